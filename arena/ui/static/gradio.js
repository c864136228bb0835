// Gives Gradio its configuration. The page loads Gradio's own script after this one.
const config = JSON.parse(document.getElementById("gradio").textContent);
window.gradio_config = { ...config, root: window.location.origin };
window.gradio_api_info = { named_endpoints: {}, unnamed_endpoints: {} };
window.__gradio_mode__ = "app";
