"""Errors as providers and gateways send them, where that is described, and what they come to."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arena.domain.vote import FailureClass as Failure

GITHUB = "https://github.com/"


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


def _error(message: str, **more: object) -> dict[str, object]:
    return {"error": {"message": message, **more}}


def _extra(*place: object) -> dict[str, object]:
    return {"type": "extra_forbidden", "loc": [*place], "msg": "Extra inputs are not permitted"}


ENUM = "failed to satisfy constraint: Member must satisfy enum value set: [user, assistant]"
REFUSALS: Mapping[str, ProviderError] = {
    "openai-unknown": ProviderError(
        GITHUB + "agno-agi/agno/issues/1066",
        400,
        _error(
            "Unknown parameter: 'stream_options'.",
            param="stream_options",
            code="unknown_parameter",
        ),
        refuses="stream_options",
    ),
    "azure-argument": ProviderError(
        GITHUB + "songquanpeng/one-api/issues/1423",
        400,
        _error(
            "Unrecognized request argument supplied: stream_options. Please contact us through an "
            "Azure support request for further questions.",
            param="",
        ),
        refuses="stream_options",
    ),
    "azure-validation": ProviderError(
        GITHUB + "microsoft/semantic-kernel/issues/10510",
        422,
        _error("Validation error at #/stream_options: Extra inputs are not permitted"),
        refuses="stream_options",
    ),
    "openai-tokens": ProviderError(
        GITHUB + "griptape-ai/ComfyUI-Griptape/issues/312",
        400,
        _error(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
            "'max_completion_tokens' instead.",
            param="max_tokens",
            code="unsupported_parameter",
        ),
        refuses="max_tokens",
    ),
    "groq-tokens": ProviderError(
        GITHUB + "AnswerDotAI/shell_sage/issues/9",
        400,
        _error("property 'max_completion_tokens' is unsupported, did you mean 'max_tokens'?"),
        refuses="max_completion_tokens",
    ),
    "groq-store": ProviderError(
        GITHUB + "fanenr/chatbot/issues/21",
        400,
        _error("property 'store' is unsupported, did you mean 'stop'?"),
        refuses="store",
    ),
    "openai-temperature": ProviderError(
        GITHUB + "gabrii/Cursor-Azure-GPT-5/issues/33",
        400,
        _error(
            "Unsupported value: 'temperature' does not support 0.0 with this model. Only the "
            "default (1) value is supported.",
            param="temperature",
            code="unsupported_value",
        ),
        refuses="temperature",
    ),
    "litellm-value": ProviderError(
        GITHUB + "BerriAI/litellm/pull/33738",
        400,
        _error(
            "litellm.UnsupportedParamsError: gpt-5-nano doesn't support temperature=0.1 while "
            "reasoning is active. Only temperature=1 is supported.",
            code="400",
        ),
        refuses="temperature",
    ),
    "litellm-list": ProviderError(
        GITHUB + "lm-sys/RouteLLM/pull/72",
        400,
        _error(
            "litellm.UnsupportedParamsError: ollama does not support parameters: "
            "['response_format'], for model=llama3. To drop these, set drop_params."
        ),
        refuses="response_format",
    ),
    "litellm-mapping": ProviderError(
        GITHUB + "lm-sys/RouteLLM/pull/72",
        400,
        _error("mistral does not support parameters: {'seed': 7}. To drop it set drop_params."),
        refuses="seed",
    ),
    "xai-camel": ProviderError(
        GITHUB + "BerriAI/litellm/issues/14056",
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "Argument not supported on this model: frequencyPenalty",
        },
        refuses="frequency_penalty",
        says="Argument not supported on this model",
    ),
    "mistral-nested": ProviderError(
        GITHUB + "nomtek/mistralai_client_dart/issues/44",
        422,
        {"object": "error", "message": {"detail": [_extra("body", "logprobs")]}, "param": None},
        refuses="logprobs",
        says="body.logprobs: Extra inputs are not permitted",
    ),
    "mistral-twice": ProviderError(
        GITHUB + "partITech/php-mistral/issues/76",
        422,
        {
            "object": "Error",
            "detail": [_extra("body", "top_k")],
            "message": [_extra("body", "top_k")],
            "code": 3001,
        },
        refuses="top_k",
    ),
    "fastapi": ProviderError(
        "https://docs.pydantic.dev/latest/errors/validation_errors/#extra_forbidden",
        422,
        {"detail": [_extra("body", "stream_options", "include_usage")]},
        refuses="stream_options",
    ),
    "pydantic-1": ProviderError(
        "https://docs.pydantic.dev/1.10/usage/model_config/",
        422,
        {
            "detail": [
                {"loc": ["body", "top_p"], "type": "value_error.extra", "msg": "extra fields"}
            ]
        },
        refuses="top_p",
    ),
    "vllm-text": ProviderError(
        GITHUB + "gpustack/gpustack/issues/429",
        400,
        {
            "object": "error",
            "message": "[{'type': 'extra_forbidden', 'loc': ('body', 'stream_options'), 'msg': "
            "'Extra inputs are not permitted', 'input': {'include_usage': True}}]",
            "type": "BadRequestError",
            "code": 400,
        },
        refuses="stream_options",
    ),
    "ajv": ProviderError(
        "https://ajv.js.org/api.html#error-objects",
        400,
        {
            "statusCode": 400,
            "error": "Bad Request",
            "message": "body must NOT have additional properties",
            "errors": [{"keyword": "additionalProperties", "params": {"additionalProperty": "n"}}],
        },
        refuses="n",
    ),
    "bedrock": ProviderError(
        GITHUB + "langgenius/dify/pull/3326",
        400,
        {
            "message": "Malformed input request: #: extraneous key [top_p] is not permitted, "
            "please reformat your input and try again."
        },
        refuses="top_p",
    ),
    "gemini": ProviderError(
        GITHUB + "Alishahryar1/free-claude-code/issues/542",
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": 'Invalid JSON payload received. Unknown name "logprobs": '
                    "Cannot find field.",
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        refuses="logprobs",
    ),
    "cohere": ProviderError(
        GITHUB + "davidmigloz/ai_clients_dart/issues/26",
        422,
        {"id": "1", "message": "unprocessable entity: n is not supported"},
        refuses="n",
    ),
    "cohere-field": ProviderError(
        GITHUB + "OpenRouterTeam/openrouter-examples/issues/71",
        422,
        {"message": "unknown field: parameter 'seed' is not a valid field. See the docs"},
        refuses="seed",
    ),
    "anthropic-deprecated": ProviderError(
        GITHUB + "Metaculus/forecasting-tools/pull/308",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "`temperature` is deprecated for this model.",
            },
        },
        refuses="temperature",
    ),
    "openrouter-raw": ProviderError(
        "https://openrouter.ai/docs/api-reference/errors",
        400,
        _error(
            "Provider returned error",
            code=400,
            metadata={
                "provider_name": "Azure",
                "raw": json.dumps(_error("Unknown parameter: 'seed'.", param="seed")),
            },
        ),
        refuses="seed",
        says="Unknown parameter: 'seed'.",
    ),
    "in-a-reply": ProviderError(
        "https://openrouter.ai/docs/api-reference/errors",
        200,
        _error("Unsupported parameter: 'temperature'", code="unsupported_parameter"),
        refuses="temperature",
    ),
    "vllm-system": ProviderError(
        GITHUB + "vllm-project/vllm/pull/2964",
        400,
        {"object": "error", "message": "System role not supported", "code": 400},
        refuses="system",
    ),
    "openai-system": ProviderError(
        GITHUB + "TheR1D/shell_gpt/issues/636",
        400,
        _error(
            "Unsupported value: 'messages[0].role' does not support 'system' with this model.",
            param="messages[0].role",
            code="unsupported_value",
        ),
        refuses="system",
    ),
    "bedrock-system": ProviderError(
        GITHUB + "567-labs/instructor/issues/1753",
        400,
        {
            "message": "This model doesn't support system messages. Try again without a system "
            "message or use a model that supports system messages."
        },
        refuses="system",
    ),
    "bedrock-enum": ProviderError(
        GITHUB + "continuedev/continue/issues/1938",
        400,
        {"message": f"1 validation error: Value 'system' at 'messages.1.member.role' {ENUM}"},
        refuses="system",
    ),
    "mistral-system": ProviderError(
        GITHUB + "anomalyco/opencode/issues/5034",
        400,
        _error("Only user, assistant and tool roles are supported, got system"),
        refuses="system",
    ),
    "template-system": ProviderError(
        GITHUB + "vllm-project/vllm/issues/2080",
        400,
        {"object": "error", "message": "Conversation roles must alternate user/assistant/..."},
        refuses="system",
    ),
    "gemma-system": ProviderError(
        GITHUB + "microsoft/vscode/issues/258088",
        400,
        [_error("Developer instruction is not enabled for models/gemma-3-27b-it", code=400)],
        refuses="system",
    ),
    "anthropic-system": ProviderError(
        "https://docs.anthropic.com/en/api/messages",
        400,
        _error('messages: Unexpected role "system". The API accepts a top-level parameter.'),
        refuses="system",
    ),
}
"""Of a parameter that is not taken at all."""

BLAMED: Mapping[str, ProviderError] = {
    "larger": ProviderError(
        "vLLM, limits of max_tokens",
        400,
        _error("This model does not support max_tokens larger than 8192."),
    ),
    "limit-is": ProviderError(
        "LiteLLM, limits of max_tokens",
        400,
        _error("max_tokens of 9999 is not supported: the limit is 4096"),
    ),
    "values-are": ProviderError(
        "OpenAI API reference, unsupported_value",
        400,
        _error(
            "Unsupported value: 'max_tokens' 9999. Supported values are 1 to 4096.",
            param="max_tokens",
            code="unsupported_value",
        ),
    ),
    "in-a-range": ProviderError(
        "Anthropic API, temperature",
        400,
        _error("Temperature 1.7 is not supported, expected a value in [0, 1]"),
    ),
    "quoted-prompt": ProviderError(
        "OpenAI API reference, content_policy_violation",
        400,
        _error(
            "The prompt 'temperature is not supported' was flagged",
            code="content_policy_violation",
        ),
        Failure.CONTENT_FILTER,
    ),
    "value": ProviderError(
        "https://platform.openai.com/docs/guides/error-codes",
        400,
        _error(
            "max_tokens is too large: 99999. This model supports at most 4096 completion tokens.",
            param="max_tokens",
        ),
    ),
    "range": ProviderError(
        "https://platform.openai.com/docs/api-reference/chat/create",
        400,
        _error("3 is greater than the maximum of 2 - 'temperature'", param="temperature"),
    ),
    "type": ProviderError(
        GITHUB + "ai-shifu/ChatALL/issues/901",
        400,
        _error("'temperature' : value must be a number", type="invalid_request_error"),
    ),
    "other-name": ProviderError(
        GITHUB + "immersive-translate/immersive-translate/issues/3003",
        400,
        _error("property 'chat_template_kwargs' is unsupported, did you mean 'temperature'?"),
    ),
    "in-messages": ProviderError(
        GITHUB + "odysseus-dev/odysseus/issues/200",
        400,
        _error("'messages.1' : property 'metadata' is unsupported"),
    ),
    "in-messages-located": ProviderError(
        GITHUB + "charmbracelet/crush/issues/1590",
        422,
        {"detail": [_extra("body", "messages", 0, "user", "stop")]},
    ),
    "only-with-stream": ProviderError(
        GITHUB + "aliasrobotics/cai/issues/77",
        400,
        _error("The 'stream_options' parameter is only allowed when 'stream' is enabled."),
    ),
    "thinking": ProviderError(
        GITHUB + "iamsrikanthnani/pluely/issues/242",
        400,
        _error("`reasoning_effort` is not supported with this model"),
    ),
    "no-name": ProviderError(
        GITHUB + "lobehub/lobehub/issues/18885", 400, _error("Upstream error: 400", param="")
    ),
    "not-found": ProviderError(
        "https://platform.openai.com/docs/guides/error-codes",
        404,
        _error("Unknown parameter: 'temperature'.", param="temperature"),
        Failure.NOT_FOUND,
    ),
    "server": ProviderError(
        "https://platform.openai.com/docs/guides/error-codes",
        500,
        _error("Unknown parameter: 'temperature'.", param="temperature"),
        Failure.OVERLOADED,
    ),
}
"""Of something else, though they name a parameter."""

QUOTA = "You exceeded your current quota, please check your plan and billing details."
RETRY = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "17s"}
SPENT: Mapping[str, ProviderError] = {
    "novita-balance": ProviderError(
        "Novita, errors: NOT_ENOUGH_BALANCE",
        403,
        {"code": 403, "reason": "NOT_ENOUGH_BALANCE", "message": "not enough balance"},
        Failure.NO_CREDIT,
    ),
    "fireworks-suspended": ProviderError(
        "Fireworks, account suspension",
        412,
        _error("Account x is suspended, possibly due to reaching the monthly spending limit"),
        Failure.NO_CREDIT,
    ),
    "openrouter-key-limit": ProviderError(
        "OpenRouter, errors and debugging: limits of a key",
        403,
        _error("Key limit exceeded (total limit)", code=403),
        Failure.NO_CREDIT,
    ),
    "anthropic-spend-limit": ProviderError(
        "Microsoft Dev Proxy, Anthropic's errors: enforced_spend_limit_reached",
        429,
        {
            "type": "error",
            "error": {
                "type": "rate_limit_error",
                "message": "This organization has reached its limit.",
                "details": {"error_code": "enforced_spend_limit_reached"},
            },
        },
        Failure.NO_CREDIT,
    ),
    "openai": ProviderError(
        "https://platform.openai.com/docs/guides/error-codes",
        429,
        _error(QUOTA, type="insufficient_quota", code="insufficient_quota"),
        says=QUOTA,
    ),
    "openai-code": ProviderError(
        "https://learn.microsoft.com/microsoft-cloud/dev/dev-proxy/concepts/openai-insufficient-quota",
        429,
        _error("Access is off.", type="x", code="credit_balance_exhausted"),
    ),
    "openai-spend": ProviderError(
        "https://learn.microsoft.com/microsoft-cloud/dev/dev-proxy/concepts/openai-insufficient-quota",
        429,
        _error("Access is off.", code="project_spend_limit_exceeded"),
    ),
    "openai-inactive": ProviderError(
        "https://kerlig.com/help/open-ai/troubleshooting",
        429,
        _error("Your account is not active, please check your billing details on our website."),
    ),
    "openai-hard-limit": ProviderError(
        "https://platform.openai.com/docs/guides/error-codes",
        400,
        _error("Billing hard limit has been reached", code="billing_hard_limit_reached"),
    ),
    "anthropic": ProviderError(
        GITHUB + "anthropics/claude-code/issues/4684",
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Your credit balance is too low to access the Anthropic API.",
            },
        },
    ),
    "deepseek": ProviderError(
        GITHUB + "Aider-AI/aider/issues/4851",
        402,
        _error("Insufficient Balance", type="unknown_error", code="invalid_request_error"),
    ),
    "moonshot-at-a-gateway": ProviderError(
        GITHUB + "anomalyco/opencode/issues/24462",
        429,
        _error(
            "Error from provider: Provider returned error",
            code=429,
            metadata={
                "raw": json.dumps(
                    _error(
                        "Your account is suspended due to insufficient balance, please recharge",
                        type="exceeded_current_quota_error",
                    )
                )
            },
        ),
        says="suspended due to insufficient balance",
    ),
    "alibaba": ProviderError(
        GITHUB + "hsliuping/TradingAgents-CN/issues/170",
        400,
        _error(
            "Access denied, please make sure your account is in good standing.", code="Arrearage"
        ),
    ),
    "zhipu": ProviderError(
        GITHUB + "langgenius/dify/issues/5850",
        429,
        _error("您的账户已欠费，请充值后重试。", code="1113"),
        says="欠费",
    ),
    "zhipu-packages": ProviderError(
        GITHUB + "continuedev/continue/issues/11823",
        429,
        _error("余额不足或无可用资源包,请充值。"),
    ),
    "minimax": ProviderError(
        GITHUB + "MiniMax-AI/MiniMax-M2/issues/62",
        500,
        {
            "type": "error",
            "error": {"type": "api_error", "message": "insufficient balance (1008)"},
        },
    ),
    "minimax-in-a-reply": ProviderError(
        "https://platform.minimax.io/docs/api-reference/errorcode",
        200,
        {
            "id": "1",
            "choices": None,
            "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"},
        },
    ),
    "openrouter": ProviderError(
        GITHUB + "hassanmsthf11/unlimited-claude-AI/issues/22",
        402,
        _error("Insufficient credits. Add more using https://openrouter.ai/credits", code=402),
    ),
    "xai": ProviderError(
        GITHUB + "continuedev/continue/issues/10373",
        429,
        "Your team has either used all available credits or reached its monthly spending limit.",
    ),
    "hugging-face": ProviderError(
        GITHUB + "huggingface/agents-course/issues/386",
        402,
        {"error": "You have exceeded your monthly included credits for Inference Providers."},
    ),
    "volcengine": ProviderError(
        GITHUB + "coze-dev/coze-studio/issues/2195",
        403,
        {
            "code": "AccountOverdueError",
            "message": "The request failed because your account has an overdue balance.",
            "type": "Forbidden",
        },
    ),
    "overdue": ProviderError(
        GITHUB + "RooCodeInc/Roo-Code/issues/12309",
        403,
        _error("Access denied due to overdue account"),
    ),
}
"""Of an account that has nothing left to spend."""

PASSING: Mapping[str, ProviderError] = {
    "gemini": ProviderError(
        GITHUB + "google-gemini/gemini-cli/issues/8883",
        429,
        [{"error": {"code": 429, "message": QUOTA, "details": [{"@type": "x"}, RETRY]}}],
        Failure.RATE_LIMIT,
        wait_s=17.0,
    ),
    "gemini-quoted": ProviderError(
        GITHUB + "continuedev/continue/issues/10085",
        429,
        _error(
            json.dumps(_error(f"{QUOTA}\nPlease retry in 38.863719904s.", code=429), indent=2),
            code=429,
            status="Too Many Requests",
        ),
        Failure.RATE_LIMIT,
        wait_s=38.863719904,
        says=QUOTA,
    ),
    "groq": ProviderError(
        "https://console.groq.com/docs/rate-limits",
        429,
        _error(
            "Rate limit reached for model on tokens per minute: Limit 6000. Please try again in "
            "7.66s. Need more tokens? Upgrade today at https://console.groq.com/settings/billing",
            code="rate_limit_exceeded",
        ),
        Failure.RATE_LIMIT,
        wait_s=7.66,
    ),
    "moonshot": ProviderError(
        GITHUB + "harry0703/MoneyPrinterTurbo/issues/339",
        429,
        _error(
            "Your account request reached max request: 3, please try again after 1 seconds",
            type="rate_limit_reached_error",
        ),
        Failure.RATE_LIMIT,
        wait_s=1.0,
    ),
}
"""Of limits that pass, though some speak of quotas and bills."""

SHAPES: Mapping[str, ProviderError] = {
    "array-of-google": ProviderError(
        "https://ai.google.dev/gemini-api/docs/troubleshooting",
        400,
        [{"error": {"code": 400, "message": "API key not valid. Please pass a valid API key."}}],
        Failure.AUTH,
        says="status 400, API key not valid. Please pass a valid API key.",
    ),
    "array": ProviderError(
        GITHUB + "google-gemini/gemini-cli/issues/14811",
        401,
        [{"error": {"code": 401, "message": "API key not valid. Please pass a valid API key."}}],
        Failure.AUTH,
        says="status 401, API key not valid. Please pass a valid API key.",
    ),
    "errors": ProviderError(
        GITHUB + "anomalyco/opencode/issues/23773",
        404,
        {"result": None, "success": False, "errors": [{"code": 7003, "message": "No route"}]},
        Failure.NOT_FOUND,
        says="status 404, No route",
    ),
    "error-list": ProviderError(
        GITHUB + "cloudflare/workers-sdk/pull/4522",
        403,
        {"error": [{"code": 10000, "message": "Authentication error"}]},
        Failure.AUTH,
        says="status 403, Authentication error",
    ),
    "fault": ProviderError(
        "https://docs.apigee.com/api-platform/troubleshoot/policies/runtime/reset-quota-runtime-errors",
        429,
        {
            "fault": {
                "faultstring": "Rate limit quota violation. Quota limit exceeded.",
                "detail": {"errorcode": "policies.ratelimit.QuotaViolation"},
            }
        },
        Failure.RATE_LIMIT,
        says="status 429, Rate limit quota violation. Quota limit exceeded.",
    ),
    "message": ProviderError(
        "https://docs.cohere.com/reference/errors",
        404,
        {"id": "1", "message": "model 'x' not found"},
        Failure.NOT_FOUND,
        says="status 404, model 'x' not found",
    ),
    "detail": ProviderError(
        "https://fastapi.tiangolo.com/tutorial/handling-errors/",
        503,
        {"detail": "The model is being loaded"},
        Failure.OVERLOADED,
        says="status 503, The model is being loaded",
    ),
    "detail-object": ProviderError(
        "https://fastapi.tiangolo.com/tutorial/handling-errors/",
        400,
        {"detail": {"error": {"message": "prompt is too long"}}},
        Failure.CONTEXT_LENGTH,
        says="status 400, prompt is too long",
    ),
    "text": ProviderError(
        GITHUB + "lmstudio-ai/lmstudio-bug-tracker/issues/618",
        200,
        {"error": "Unexpected endpoint or method. (POST /chat/completions)"},
        Failure.NOT_FOUND,
        says="status 200, Unexpected endpoint or method. (POST /chat/completions)",
    ),
    "text-and-message": ProviderError(
        "https://docs.nestjs.com/exception-filters",
        403,
        {"statusCode": 403, "error": "Forbidden", "message": "no such tenant"},
        Failure.AUTH,
        says="status 403, Forbidden: no such tenant",
    ),
    "problem": ProviderError(
        "https://www.rfc-editor.org/rfc/rfc9457",
        429,
        {
            "type": "about:blank",
            "title": "Too Many Requests",
            "status": 429,
            "detail": "Slow down.",
        },
        Failure.RATE_LIMIT,
        says="status 429, Slow down.",
    ),
    "page": ProviderError(
        "https://nginx.org/en/docs/http/ngx_http_core_module.html#error_page",
        502,
        "<html>\r\n<head><title>502 Bad\r\n Gateway</title></head>\r\n<body>secret</body></html>",
        Failure.OVERLOADED,
        says="status 502, a page of HTML titled '502 Bad Gateway'",
    ),
    "page-without-a-title": ProviderError(
        "https://lmstudio.ai/docs/app/api",
        404,
        "<!DOCTYPE html><html><body>LM Studio</body></html>",
        Failure.NOT_FOUND,
        says="status 404, a page of HTML without a title",
    ),
}
"""Of all shapes."""


def _too_long(source: str, message: str, **more: object) -> ProviderError:
    return ProviderError(
        source, 400, _error(message, **more), Failure.CONTEXT_LENGTH, says=message
    )


TOO_LONG: Mapping[str, ProviderError] = {
    "llama.cpp": _too_long(
        "https://github.com/ggml-org/llama.cpp/tree/master/tools/server",
        "request (9021 tokens) exceeds the available context size (2048 tokens), "
        "try increasing it",
        code=400,
        type="exceed_context_size_error",
        n_prompt_tokens=9021,
        n_ctx=2048,
    ),
    "gemini": _too_long(
        GITHUB + "googleapis/python-genai/issues/2466",
        "The input token count (81881) exceeds the maximum number of tokens allowed (65536).",
        code=400,
        status="INVALID_ARGUMENT",
    ),
    "xai": _too_long(
        GITHUB + "cline/cline/issues/3120",
        "This model's maximum prompt length is 131072 but the request contains 136973 tokens.",
    ),
    "xai-code": _too_long(
        GITHUB + "UKGovernmentBEIS/inspect_ai/pull/5208",
        "Failed to start sampling: [input_too_large] Current message (1149677 tokens) exceeds "
        "budget (975424 tokens)",
    ),
    "tgi-prompt": _too_long(
        GITHUB + "huggingface/text-generation-inference/issues/695",
        "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168",
    ),
    "tgi-sum": _too_long(
        GITHUB + "huggingface/text-generation-inference/issues/628",
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. "
        "Given: 1244 `inputs` tokens and 1000 `max_new_tokens`",
    ),
    "bedrock": ProviderError(
        GITHUB + "aws-samples/assessment-generator/issues/2",
        400,
        {"message": "Input is too long for requested model.", "__type": "ValidationException"},
        Failure.CONTEXT_LENGTH,
        says="Input is too long for requested model.",
    ),
    "groq": _too_long(
        GITHUB + "OpenHands/OpenHands/issues/1902",
        "Please reduce the length of the messages or completion.",
        type="invalid_request_error",
        param="messages",
        code="context_length_exceeded",
    ),
}
"""Of prompts that do not fit."""
