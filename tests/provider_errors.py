"""Errors as providers and gateways send them, where that is described, and what they come to."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arena.domain.vote import FailureClass as Failure


@dataclass(frozen=True, slots=True)
class ProviderError:
    """An error.

    Attributes
    ----------
    source : str
        Where it is described.
    status : int
        Of the response; 200 for one that comes in the place of a reply.
    body : object
        Decoded JSON, or a text.
    end : FailureClass
    refuses : str
        The parameter that it names as one that is not taken; empty if none.
    wait_s : float or None
        Seconds that it asks to wait.
    says : str
        Part of what an operator reads.
    """

    source: str
    status: int
    body: Any
    end: Failure = Failure.BAD_REQUEST
    refuses: str = ""
    wait_s: float | None = None
    says: str = ""

    @property
    def text(self) -> str:
        """The body as it is sent."""
        return self.body if isinstance(self.body, str) else json.dumps(self.body)


def _read(errors: str, end: Failure = Failure.BAD_REQUEST) -> Mapping[str, ProviderError]:
    """Read a line of name, status, what is special and source; the body; and what is said."""
    read = {}
    for one in re.split(r"\n(?=\S)", errors.strip()):
        head, *lines = one.split("\n ")
        name, status, special, source = re.findall(r"(\S+) (\d+)((?: \w+=\S+)*) (.+)", head)[0]
        options: dict[str, str] = dict(part.split("=") for part in special.split())
        says = [line[2:] for line in lines if line.startswith("> ")]
        read[name] = ProviderError(
            source,
            int(status),
            json.loads(" ".join(line for line in lines if not line.startswith("> "))),
            Failure[options["end"]] if "end" in options else end,
            options.get("refuses", ""),
            float(options["wait_s"]) if "wait_s" in options else None,
            "".join(says),
        )
    return read


REFUSALS = _read(
    r"""
openai-unknown 400 refuses=stream_options https://github.com/agno-agi/agno/issues/1066
 {"error": {"message": "Unknown parameter: 'stream_options'.", "param": "stream_options", "code":
 "unknown_parameter"}}
azure-argument 400 refuses=stream_options https://github.com/songquanpeng/one-api/issues/1423
 {"error": {"message": "Unrecognized request argument supplied: stream_options. Please contact us
 through an Azure support request for further questions.", "param": ""}}
azure-validation 422 refuses=stream_options https://github.com/microsoft/semantic-kernel/issues/10510
 {"error": {"message": "Validation error at #/stream_options: Extra inputs are not permitted"}}
openai-tokens 400 refuses=max_tokens https://github.com/griptape-ai/ComfyUI-Griptape/issues/312
 {"error": {"message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use
 'max_completion_tokens' instead.", "param": "max_tokens", "code": "unsupported_parameter"}}
groq-tokens 400 refuses=max_completion_tokens https://github.com/AnswerDotAI/shell_sage/issues/9
 {"error": {"message": "property 'max_completion_tokens' is unsupported, did you mean
 'max_tokens'?"}}
groq-store 400 refuses=store https://github.com/fanenr/chatbot/issues/21
 {"error": {"message": "property 'store' is unsupported, did you mean 'stop'?"}}
openai-temperature 400 refuses=temperature https://github.com/gabrii/Cursor-Azure-GPT-5/issues/33
 {"error": {"message": "Unsupported value: 'temperature' does not support 0.0 with this model.
 Only the default (1) value is supported.", "param": "temperature", "code": "unsupported_value"}}
litellm-value 400 refuses=temperature https://github.com/BerriAI/litellm/pull/33738
 {"error": {"message": "litellm.UnsupportedParamsError: gpt-5-nano doesn't support
 temperature=0.1 while reasoning is active. Only temperature=1 is supported.", "code": "400"}}
litellm-list 400 refuses=response_format https://github.com/lm-sys/RouteLLM/pull/72
 {"error": {"message": "litellm.UnsupportedParamsError: ollama does not support parameters:
 ['response_format'], for model=llama3. To drop these, set drop_params."}}
litellm-mapping 400 refuses=seed https://github.com/lm-sys/RouteLLM/pull/72
 {"error": {"message": "mistral does not support parameters: {'seed': 7}. To drop it set
 drop_params."}}
xai-camel 400 refuses=frequency_penalty https://github.com/BerriAI/litellm/issues/14056
 {"code": "Client specified an invalid argument", "error": "Argument not supported on this model:
 frequencyPenalty"}
 > Argument not supported on this model
mistral-nested 422 refuses=logprobs https://github.com/nomtek/mistralai_client_dart/issues/44
 {"object": "error", "message": {"detail": [{"type": "extra_forbidden", "loc": ["body",
 "logprobs"], "msg": "Extra inputs are not permitted"}]}, "param": null}
 > body.logprobs: Extra inputs are not permitted
mistral-twice 422 refuses=top_k https://github.com/partITech/php-mistral/issues/76
 {"object": "Error", "detail": [{"type": "extra_forbidden", "loc": ["body", "top_k"], "msg":
 "Extra inputs are not permitted"}], "message": [{"type": "extra_forbidden", "loc": ["body",
 "top_k"], "msg": "Extra inputs are not permitted"}], "code": 3001}
fastapi 422 refuses=stream_options https://docs.pydantic.dev/latest/errors/validation_errors/#extra_forbidden
 {"detail": [{"type": "extra_forbidden", "loc": ["body", "stream_options", "include_usage"],
 "msg": "Extra inputs are not permitted"}]}
pydantic-1 422 refuses=top_p https://docs.pydantic.dev/1.10/usage/model_config/
 {"detail": [{"loc": ["body", "top_p"], "type": "value_error.extra", "msg": "extra fields"}]}
vllm-text 400 refuses=stream_options https://github.com/gpustack/gpustack/issues/429
 {"object": "error", "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'),
 'msg': 'Extra inputs are not permitted', 'input': {'include_usage': True}}]", "type":
 "BadRequestError", "code": 400}
ajv 400 refuses=n https://ajv.js.org/api.html#error-objects
 {"statusCode": 400, "error": "Bad Request", "message": "body must NOT have additional
 properties", "errors": [{"keyword": "additionalProperties", "params": {"additionalProperty":
 "n"}}]}
bedrock 400 refuses=top_p https://github.com/langgenius/dify/pull/3326
 {"message": "Malformed input request: #: extraneous key [top_p] is not permitted, please
 reformat your input and try again."}
gemini 400 refuses=logprobs https://github.com/Alishahryar1/free-claude-code/issues/542
 [{"error": {"code": 400, "message": "Invalid JSON payload received. Unknown name \"logprobs\":
 Cannot find field.", "status": "INVALID_ARGUMENT"}}]
cohere 422 refuses=n https://github.com/davidmigloz/ai_clients_dart/issues/26
 {"id": "1", "message": "unprocessable entity: n is not supported"}
cohere-field 422 refuses=seed https://github.com/OpenRouterTeam/openrouter-examples/issues/71
 {"message": "unknown field: parameter 'seed' is not a valid field. See the docs"}
anthropic-deprecated 400 refuses=temperature https://github.com/Metaculus/forecasting-tools/pull/308
 {"type": "error", "error": {"type": "invalid_request_error", "message": "`temperature` is
 deprecated for this model."}}
openrouter-raw 400 refuses=seed https://openrouter.ai/docs/api-reference/errors
 {"error": {"message": "Provider returned error", "code": 400, "metadata": {"provider_name":
 "Azure", "raw": "{\"error\": {\"message\": \"Unknown parameter: 'seed'.\", \"param\":
 \"seed\"}}"}}}
 > Unknown parameter: 'seed'.
in-a-reply 200 refuses=temperature https://openrouter.ai/docs/api-reference/errors
 {"error": {"message": "Unsupported parameter: 'temperature'", "code": "unsupported_parameter"}}
vllm-system 400 refuses=system https://github.com/vllm-project/vllm/pull/2964
 {"object": "error", "message": "System role not supported", "code": 400}
openai-system 400 refuses=system https://github.com/TheR1D/shell_gpt/issues/636
 {"error": {"message": "Unsupported value: 'messages[0].role' does not support 'system' with this
 model.", "param": "messages[0].role", "code": "unsupported_value"}}
bedrock-system 400 refuses=system https://github.com/567-labs/instructor/issues/1753
 {"message": "This model doesn't support system messages. Try again without a system message or
 use a model that supports system messages."}
bedrock-enum 400 refuses=system https://github.com/continuedev/continue/issues/1938
 {"message": "1 validation error: Value 'system' at 'messages.1.member.role' failed to satisfy
 constraint: Member must satisfy enum value set: [user, assistant]"}
mistral-system 400 refuses=system https://github.com/anomalyco/opencode/issues/5034
 {"error": {"message": "Only user, assistant and tool roles are supported, got system"}}
template-system 400 refuses=system https://github.com/vllm-project/vllm/issues/2080
 {"object": "error", "message": "Conversation roles must alternate user/assistant/..."}
gemma-system 400 refuses=system https://github.com/microsoft/vscode/issues/258088
 [{"error": {"message": "Developer instruction is not enabled for models/gemma-3-27b-it", "code":
 400}}]
anthropic-system 400 refuses=system https://docs.anthropic.com/en/api/messages
 {"error": {"message": "messages: Unexpected role \"system\". The API accepts a top-level
 parameter."}}
"""
)
"""Of a parameter that is not taken at all."""

BLAMED = _read(
    r"""
larger 400 vLLM, limits of max_tokens
 {"error": {"message": "This model does not support max_tokens larger than 8192."}}
limit-is 400 LiteLLM, limits of max_tokens
 {"error": {"message": "max_tokens of 9999 is not supported: the limit is 4096"}}
values-are 400 OpenAI API reference, unsupported_value
 {"error": {"message": "Unsupported value: 'max_tokens' 9999. Supported values are 1 to 4096.",
 "param": "max_tokens", "code": "unsupported_value"}}
in-a-range 400 Anthropic API, temperature
 {"error": {"message": "Temperature 1.7 is not supported, expected a value in [0, 1]"}}
quoted-prompt 400 end=CONTENT_FILTER OpenAI API reference, content_policy_violation
 {"error": {"message": "The prompt 'temperature is not supported' was flagged", "code":
 "content_policy_violation"}}
value 400 https://platform.openai.com/docs/guides/error-codes
 {"error": {"message": "max_tokens is too large: 99999. This model supports at most 4096
 completion tokens.", "param": "max_tokens"}}
range 400 https://platform.openai.com/docs/api-reference/chat/create
 {"error": {"message": "3 is greater than the maximum of 2 - 'temperature'", "param":
 "temperature"}}
type 400 https://github.com/ai-shifu/ChatALL/issues/901
 {"error": {"message": "'temperature' : value must be a number", "type":
 "invalid_request_error"}}
other-name 400 https://github.com/immersive-translate/immersive-translate/issues/3003
 {"error": {"message": "property 'chat_template_kwargs' is unsupported, did you mean
 'temperature'?"}}
in-messages 400 https://github.com/odysseus-dev/odysseus/issues/200
 {"error": {"message": "'messages.1' : property 'metadata' is unsupported"}}
in-messages-located 422 https://github.com/charmbracelet/crush/issues/1590
 {"detail": [{"type": "extra_forbidden", "loc": ["body", "messages", 0, "user", "stop"], "msg":
 "Extra inputs are not permitted"}]}
only-with-stream 400 https://github.com/aliasrobotics/cai/issues/77
 {"error": {"message": "The 'stream_options' parameter is only allowed when 'stream' is
 enabled."}}
thinking 400 https://github.com/iamsrikanthnani/pluely/issues/242
 {"error": {"message": "`reasoning_effort` is not supported with this model"}}
no-name 400 https://github.com/lobehub/lobehub/issues/18885
 {"error": {"message": "Upstream error: 400", "param": ""}}
not-found 404 end=NOT_FOUND https://platform.openai.com/docs/guides/error-codes
 {"error": {"message": "Unknown parameter: 'temperature'.", "param": "temperature"}}
server 500 end=OVERLOADED https://platform.openai.com/docs/guides/error-codes
 {"error": {"message": "Unknown parameter: 'temperature'.", "param": "temperature"}}
"""
)
"""Of something else, though they name a parameter."""

SPENT = _read(
    r"""
novita-balance 403 Novita, errors: NOT_ENOUGH_BALANCE
 {"code": 403, "reason": "NOT_ENOUGH_BALANCE", "message": "not enough balance"}
fireworks-suspended 412 Fireworks, account suspension
 {"error": {"message": "Account x is suspended, possibly due to reaching the monthly spending
 limit"}}
openrouter-key-limit 403 OpenRouter, errors and debugging: limits of a key
 {"error": {"message": "Key limit exceeded (total limit)", "code": 403}}
anthropic-spend-limit 429 Microsoft Dev Proxy, Anthropic's errors: enforced_spend_limit_reached
 {"type": "error", "error": {"type": "rate_limit_error", "message": "This organization has
 reached its limit.", "details": {"error_code": "enforced_spend_limit_reached"}}}
openai 429 https://platform.openai.com/docs/guides/error-codes
 {"error": {"message": "You exceeded your current quota, please check your plan and billing
 details.", "type": "insufficient_quota", "code": "insufficient_quota"}}
 > You exceeded your current quota, please check your plan and billing details.
openai-code 429 https://learn.microsoft.com/microsoft-cloud/dev/dev-proxy/concepts/openai-insufficient-quota
 {"error": {"message": "Access is off.", "type": "x", "code": "credit_balance_exhausted"}}
openai-spend 429 https://learn.microsoft.com/microsoft-cloud/dev/dev-proxy/concepts/openai-insufficient-quota
 {"error": {"message": "Access is off.", "code": "project_spend_limit_exceeded"}}
openai-inactive 429 https://kerlig.com/help/open-ai/troubleshooting
 {"error": {"message": "Your account is not active, please check your billing details on our
 website."}}
openai-hard-limit 400 https://platform.openai.com/docs/guides/error-codes
 {"error": {"message": "Billing hard limit has been reached", "code":
 "billing_hard_limit_reached"}}
anthropic 400 https://github.com/anthropics/claude-code/issues/4684
 {"type": "error", "error": {"type": "invalid_request_error", "message": "Your credit balance is
 too low to access the Anthropic API."}}
deepseek 402 https://github.com/Aider-AI/aider/issues/4851
 {"error": {"message": "Insufficient Balance", "type": "unknown_error", "code":
 "invalid_request_error"}}
moonshot-at-a-gateway 429 https://github.com/anomalyco/opencode/issues/24462
 {"error": {"message": "Error from provider: Provider returned error", "code": 429, "metadata":
 {"raw": "{\"error\": {\"message\": \"Your account is suspended due to insufficient balance,
 please recharge\", \"type\": \"exceeded_current_quota_error\"}}"}}}
 > suspended due to insufficient balance
alibaba 400 https://github.com/hsliuping/TradingAgents-CN/issues/170
 {"error": {"message": "Access denied, please make sure your account is in good standing.",
 "code": "Arrearage"}}
zhipu 429 https://github.com/langgenius/dify/issues/5850
 {"error": {"message": "您的账户已欠费，请充值后重试。", "code": "1113"}}
 > 欠费
zhipu-packages 429 https://github.com/continuedev/continue/issues/11823
 {"error": {"message": "余额不足或无可用资源包,请充值。"}}
minimax 500 https://github.com/MiniMax-AI/MiniMax-M2/issues/62
 {"type": "error", "error": {"type": "api_error", "message": "insufficient balance (1008)"}}
minimax-in-a-reply 200 https://platform.minimax.io/docs/api-reference/errorcode
 {"id": "1", "choices": null, "base_resp": {"status_code": 1008, "status_msg": "insufficient
 balance"}}
openrouter 402 https://github.com/hassanmsthf11/unlimited-claude-AI/issues/22
 {"error": {"message": "Insufficient credits. Add more using https://openrouter.ai/credits",
 "code": 402}}
xai 429 https://github.com/continuedev/continue/issues/10373
 "Your team has either used all available credits or reached its monthly spending limit."
hugging-face 402 https://github.com/huggingface/agents-course/issues/386
 {"error": "You have exceeded your monthly included credits for Inference Providers."}
volcengine 403 https://github.com/coze-dev/coze-studio/issues/2195
 {"code": "AccountOverdueError", "message": "The request failed because your account has an
 overdue balance.", "type": "Forbidden"}
overdue 403 https://github.com/RooCodeInc/Roo-Code/issues/12309
 {"error": {"message": "Access denied due to overdue account"}}
""",
    Failure.NO_CREDIT,
)
"""Of an account that has nothing left to spend."""

PASSING = _read(
    r"""
gemini 429 wait_s=17.0 https://github.com/google-gemini/gemini-cli/issues/8883
 [{"error": {"code": 429, "message": "You exceeded your current quota, please check your plan and
 billing details.", "details": [{"@type": "x"}, {"@type":
 "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}]}}]
gemini-quoted 429 wait_s=38.863719904 https://github.com/continuedev/continue/issues/10085
 {"error": {"message": "{\n  \"error\": {\n    \"message\": \"You exceeded your current quota,
 please check your plan and billing details.\\nPlease retry in 38.863719904s.\",\n    \"code\":
 429\n  }\n}", "code": 429, "status": "Too Many Requests"}}
 > You exceeded your current quota, please check your plan and billing details.
groq 429 wait_s=7.66 https://console.groq.com/docs/rate-limits
 {"error": {"message": "Rate limit reached for model on tokens per minute: Limit 6000. Please try
 again in 7.66s. Need more tokens? Upgrade today at https://console.groq.com/settings/billing",
 "code": "rate_limit_exceeded"}}
moonshot 429 wait_s=1.0 https://github.com/harry0703/MoneyPrinterTurbo/issues/339
 {"error": {"message": "Your account request reached max request: 3, please try again after 1
 seconds", "type": "rate_limit_reached_error"}}
""",
    Failure.RATE_LIMIT,
)
"""Of limits that pass, though some speak of quotas and bills."""

SHAPES = _read(
    r"""
array-of-google 400 end=AUTH https://ai.google.dev/gemini-api/docs/troubleshooting
 [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}]
 > status 400, API key not valid. Please pass a valid API key.
array 401 end=AUTH https://github.com/google-gemini/gemini-cli/issues/14811
 [{"error": {"code": 401, "message": "API key not valid. Please pass a valid API key."}}]
 > status 401, API key not valid. Please pass a valid API key.
errors 404 end=NOT_FOUND https://github.com/anomalyco/opencode/issues/23773
 {"result": null, "success": false, "errors": [{"code": 7003, "message": "No route"}]}
 > status 404, No route
error-list 403 end=AUTH https://github.com/cloudflare/workers-sdk/pull/4522
 {"error": [{"code": 10000, "message": "Authentication error"}]}
 > status 403, Authentication error
fault 429 end=RATE_LIMIT https://docs.apigee.com/api-platform/troubleshoot/policies/runtime/reset-quota-runtime-errors
 {"fault": {"faultstring": "Rate limit quota violation. Quota limit exceeded.", "detail":
 {"errorcode": "policies.ratelimit.QuotaViolation"}}}
 > status 429, Rate limit quota violation. Quota limit exceeded.
message 404 end=NOT_FOUND https://docs.cohere.com/reference/errors
 {"id": "1", "message": "model 'x' not found"}
 > status 404, model 'x' not found
detail 503 end=OVERLOADED https://fastapi.tiangolo.com/tutorial/handling-errors/
 {"detail": "The model is being loaded"}
 > status 503, The model is being loaded
detail-object 400 end=CONTEXT_LENGTH https://fastapi.tiangolo.com/tutorial/handling-errors/
 {"detail": {"error": {"message": "prompt is too long"}}}
 > status 400, prompt is too long
text 200 end=NOT_FOUND https://github.com/lmstudio-ai/lmstudio-bug-tracker/issues/618
 {"error": "Unexpected endpoint or method. (POST /chat/completions)"}
 > status 200, Unexpected endpoint or method. (POST /chat/completions)
text-and-message 403 end=AUTH https://docs.nestjs.com/exception-filters
 {"statusCode": 403, "error": "Forbidden", "message": "no such tenant"}
 > status 403, Forbidden: no such tenant
problem 429 end=RATE_LIMIT https://www.rfc-editor.org/rfc/rfc9457
 {"type": "about:blank", "title": "Too Many Requests", "status": 429, "detail": "Slow down."}
 > status 429, Slow down.
page 502 end=OVERLOADED https://nginx.org/en/docs/http/ngx_http_core_module.html#error_page
 "<html>\r\n<head><title>502 Bad\r\n Gateway</title></head>\r\n<body>secret</body></html>"
 > status 502, a page of HTML titled '502 Bad Gateway'
page-without-a-title 404 end=NOT_FOUND https://lmstudio.ai/docs/app/api
 "<!DOCTYPE html><html><body>LM Studio</body></html>"
 > status 404, a page of HTML without a title
"""
)
"""Of all shapes."""

TOO_LONG = _read(
    r"""
llama.cpp 400 https://github.com/ggml-org/llama.cpp/tree/master/tools/server
 {"error": {"message": "request (9021 tokens) exceeds the available context size (2048 tokens),
 try increasing it", "code": 400, "type": "exceed_context_size_error", "n_prompt_tokens": 9021,
 "n_ctx": 2048}}
 > request (9021 tokens) exceeds the available context size (2048 tokens), try increasing it
gemini 400 https://github.com/googleapis/python-genai/issues/2466
 {"error": {"message": "The input token count (81881) exceeds the maximum number of tokens
 allowed (65536).", "code": 400, "status": "INVALID_ARGUMENT"}}
 > The input token count (81881) exceeds the maximum number of tokens allowed (65536).
xai 400 https://github.com/cline/cline/issues/3120
 {"error": {"message": "This model's maximum prompt length is 131072 but the request contains
 136973 tokens."}}
 > This model's maximum prompt length is 131072 but the request contains 136973 tokens.
xai-code 400 https://github.com/UKGovernmentBEIS/inspect_ai/pull/5208
 {"error": {"message": "Failed to start sampling: [input_too_large] Current message (1149677
 tokens) exceeds budget (975424 tokens)"}}
 > Failed to start sampling: [input_too_large] Current message (1149677 tokens) exceeds budget (9
tgi-prompt 400 https://github.com/huggingface/text-generation-inference/issues/695
 {"error": {"message": "Input validation error: `inputs` must have less than 1024 tokens. Given:
 1168"}}
 > Input validation error: `inputs` must have less than 1024 tokens. Given: 1168
tgi-sum 400 https://github.com/huggingface/text-generation-inference/issues/628
 {"error": {"message": "Input validation error: `inputs` tokens + `max_new_tokens` must be <=
 2048. Given: 1244 `inputs` tokens and 1000 `max_new_tokens`"}}
 > Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 1244 `input
bedrock 400 https://github.com/aws-samples/assessment-generator/issues/2
 {"message": "Input is too long for requested model.", "__type": "ValidationException"}
 > Input is too long for requested model.
groq 400 https://github.com/OpenHands/OpenHands/issues/1902
 {"error": {"message": "Please reduce the length of the messages or completion.", "type":
 "invalid_request_error", "param": "messages", "code": "context_length_exceeded"}}
 > Please reduce the length of the messages or completion.
""",
    Failure.CONTEXT_LENGTH,
)
"""Of prompts that do not fit."""
