import type { ProviderName } from '../domain/records/channel.ts'

/**
 * What an answer blames: the key for all models (`key_refused`, `account_fault`), the key for the upstream model
 * that was called (`account_lacks_model`), or only a limit, although the code means a used-up account elsewhere or
 * the status a wrong request (`limited`).
 */
export type AccountAnswerKind = 'key_refused' | 'account_fault' | 'account_lacks_model' | 'limited'

/** A provider's answer about the account of the operator. */
export interface AccountAnswer {
  /** Name of the provider, as `docs/operations.md` lists it. */
  readonly provider: string
  /**
   * Where it is said: a provider of channels, hosts, or everywhere. It counts as well at hosts that are in no
   * line, because other gateways and proxies repeat what providers say.
   */
  readonly at: ProviderName | RegExp | 'any'
  /** Whether it counts there alone, because it could mean something else elsewhere. */
  readonly isOnlyThere?: true
  /** Statuses with which it is said; absent if the code or the words are enough. */
  readonly status?: readonly number[]
  /** Codes or types of the error, of which one is enough. */
  readonly codes?: readonly string[]
  /**
   * The provider's sentence, with which the message begins; `*` stands for a name or a number. It counts only
   * if no text of the request contains it.
   */
  readonly words?: string
  readonly kind: AccountAnswerKind
  /** The page that documents the answer, or a report of it. */
  readonly source: string
}

const host = (...names: readonly string[]): RegExp =>
  new RegExp(`(?:^|\\.)(?:${names.map((name) => name.replaceAll('.', '\\.')).join('|')})$`)

/** Lines for one provider. */
const lines = (
  provider: string,
  at: AccountAnswer['at'],
  source: string,
  answers: readonly (Omit<AccountAnswer, 'provider' | 'at' | 'source'> & { readonly source?: string })[],
): AccountAnswer[] => answers.map((answer) => ({ provider, at, source, ...answer }))

const PAYMENT = { status: [402], kind: 'account_fault' } as const

/**
 * All known answers that mean the account of the operator and not the request. The first line that fits counts;
 * lines without words come first. A location that is not supported is that of the gateway's server, because providers go by
 * the address that calls them. The statuses 401, 403 and 407 always refuse the key, and 402 is always a fault
 * of the account; lines for them say what a provider's page says, or that only one model is meant.
 */
export const ACCOUNT_FAULTS: readonly AccountAnswer[] = [
  ...lines('Alibaba', host('aliyuncs.com'), 'https://help.aliyun.com/en/model-studio/error-code', [
    // Here the code means tokens per minute, not an account without money.
    { status: [429], codes: ['insufficient_quota'], kind: 'limited', isOnlyThere: true },
    { codes: ['Arrearage', 'PrepaidBillOverdue', 'PostpaidBillOverdue'], kind: 'account_fault' },
    { words: 'Access denied, please make sure your account is in good standing.', kind: 'account_fault' },
    {
      codes: ['Model.AccessDenied', 'AccessDenied.Unpurchased', 'AllocationQuota.FreeTierOnly'],
      kind: 'account_lacks_model',
    },
  ]),
  ...lines('OpenAI', 'any', 'https://developers.openai.com/api/docs/guides/error-codes', [
    {
      codes: [
        'insufficient_quota',
        'credit_balance_exhausted',
        'organization_usage_limit_exceeded',
        'organization_spend_limit_exceeded',
        'project_spend_limit_exceeded',
        'billing_hard_limit_reached',
        'billing_not_active',
      ],
      kind: 'account_fault',
    },
    { codes: ['unsupported_country_region_territory'], kind: 'account_lacks_model' },
    { words: 'Country, region, or territory not supported', kind: 'account_lacks_model' },
  ]),
  ...lines('OpenAI', host('openai.com'), 'https://help.openai.com/en/articles/10910291', [
    {
      status: [403],
      codes: ['model_not_found'],
      kind: 'account_lacks_model',
      source: 'https://github.com/Aider-AI/aider/issues/604',
    },
    { words: 'Your organization must be verified to use the model *.', kind: 'account_lacks_model' },
    { words: 'Your organization must be verified to stream this model.', kind: 'account_lacks_model' },
    {
      words: 'Your organization must be verified to generate reasoning summaries.',
      kind: 'account_lacks_model',
    },
  ]),
  ...lines('Anthropic', host('anthropic.com'), 'https://platform.claude.com/docs/en/api/errors', [
    { codes: ['billing_error'], kind: 'account_fault' },
    {
      words: 'Your credit balance is too low to access the * API.',
      kind: 'account_fault',
      source: 'https://github.com/anthropics/claude-code/issues/66314',
    },
    {
      words: 'You have reached your specified API usage limits.',
      kind: 'account_fault',
      source: 'https://platform.claude.com/docs/en/api/rate-limits',
    },
    {
      words: 'This organization has been disabled.',
      kind: 'account_fault',
      source: 'https://github.com/anthropics/claude-code/issues/9384',
    },
  ]),
  ...lines(
    'Google Gemini',
    host('generativelanguage.googleapis.com'),
    'https://ai.google.dev/gemini-api/docs/troubleshooting',
    [
      { codes: ['API_KEY_INVALID'], kind: 'key_refused' },
      { ...PAYMENT, source: 'https://discuss.ai.google.dev/t/183654' },
      {
        words: 'API key not valid.',
        kind: 'key_refused',
        source: 'https://github.com/zeroclaw-labs/zeroclaw/issues/194',
      },
      {
        words: 'API key expired.',
        kind: 'key_refused',
        source: 'https://portkey.ai/error-library/authentication-error-10130',
      },
      {
        words: 'User location is not supported for the API use.',
        kind: 'account_lacks_model',
        source: 'https://discuss.ai.google.dev/t/191818',
      },
      {
        words: 'User location is not supported for the API use without a billing account linked.',
        kind: 'account_lacks_model',
        source: 'https://github.com/google-gemini/cookbook/issues/135',
      },
      {
        words: 'Your prepayment credits are depleted.',
        kind: 'account_fault',
        source: 'https://discuss.ai.google.dev/t/183654',
      },
    ],
  ),
  // Reasons of Google's service infrastructure, for Gemini and Vertex AI.
  ...lines(
    'Google Cloud',
    host('googleapis.com'),
    'https://cloud.google.com/dotnet/docs/reference/Google.Api.CommonProtos/latest/Google.Api.ErrorReason',
    [
      {
        codes: [
          'API_KEY_INVALID',
          'API_KEY_SERVICE_BLOCKED',
          'API_KEY_HTTP_REFERRER_BLOCKED',
          'API_KEY_IP_ADDRESS_BLOCKED',
          'ACCESS_TOKEN_EXPIRED',
          'CREDENTIALS_MISSING',
        ],
        kind: 'key_refused',
      },
      {
        codes: [
          'SERVICE_DISABLED',
          'BILLING_DISABLED',
          'CONSUMER_SUSPENDED',
          'CONSUMER_INVALID',
          'USER_PROJECT_DENIED',
          'ACCOUNT_STATE_INVALID',
          'GCP_SUSPENDED',
        ],
        kind: 'account_fault',
      },
      { codes: ['LOCATION_POLICY_VIOLATED', 'IAM_PERMISSION_DENIED'], kind: 'account_lacks_model' },
    ],
  ),
  ...lines(
    'Google Vertex AI',
    'vertex',
    'https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/api-errors',
    [
      { codes: ['BILLING_DISABLED', 'CONSUMER_SUSPENDED', 'SERVICE_DISABLED'], kind: 'account_fault' },
      { codes: ['IAM_PERMISSION_DENIED'], kind: 'account_lacks_model' },
      { status: [403], words: "Permission '*' denied on resource '*'", kind: 'account_lacks_model' },
    ],
  ),
  ...lines('Azure', 'azure', 'https://learn.microsoft.com/en-us/azure/ai-services/openai/reference', [
    { codes: ['AccessDenied', 'PermissionDenied'], kind: 'key_refused', isOnlyThere: true },
    {
      codes: ['ReadOnlyDisabledSubscription', 'SubscriptionDisabled', 'SubscriptionNotFound'],
      kind: 'account_fault',
    },
  ]),
  ...lines(
    'Amazon Bedrock',
    'bedrock',
    'https://docs.aws.amazon.com/bedrock/latest/userguide/troubleshooting-api-error-codes.html',
    [
      { codes: ['UnrecognizedClientException', 'ExpiredTokenException'], kind: 'key_refused' },
      {
        codes: ['ServiceQuotaExceededException'],
        kind: 'limited',
        source: 'https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InvokeModel.html',
      },
      {
        words: "You don't have access to the model with the specified model ID.",
        kind: 'account_lacks_model',
        source: 'https://github.com/anthropics/claude-code/issues/536',
      },
      {
        status: [403],
        words: 'Model access is denied due to *',
        kind: 'account_lacks_model',
        source: 'https://github.com/ministryofjustice/modernisation-platform-environments/pull/18323',
      },
      {
        words: 'Model use case details have not been submitted for this account.',
        kind: 'account_lacks_model',
        source: 'https://github.com/anthropics/claude-code/issues/16997',
      },
      { status: [403], words: 'User: * is not authorized to perform: *', kind: 'account_lacks_model' },
      {
        status: [400],
        words: 'Operation not allowed',
        kind: 'account_fault',
        isOnlyThere: true,
        source: 'https://github.com/aws/aws-cli/issues/8717',
      },
    ],
  ),
  ...lines('xAI', host('x.ai'), 'https://docs.x.ai/developers/debugging', [
    { status: [400], words: 'Incorrect API key provided: *.', kind: 'key_refused' },
    {
      words: 'Your team * has either used all available credits or reached its monthly spending limit.',
      kind: 'account_fault',
      source: 'https://github.com/continuedev/continue/issues/10373',
    },
  ]),
  ...lines('DeepSeek', host('deepseek.com'), 'https://api-docs.deepseek.com/quick_start/error_codes', [
    PAYMENT,
  ]),
  ...lines('Mistral', host('mistral.ai'), 'https://docs.mistral.ai/resources/error-glossary', [PAYMENT]),
  ...lines('Cohere', host('cohere.ai', 'cohere.com'), 'https://docs.cohere.com/reference/errors', [PAYMENT]),
  ...lines('Jina', host('jina.ai'), 'https://github.com/jina-ai/node-DeepResearch/issues/21', [
    PAYMENT,
    { words: 'Account balance not enough to run this query, please recharge.', kind: 'account_fault' },
  ]),
  ...lines(
    'Moonshot',
    host('moonshot.ai', 'moonshot.cn', 'kimi.com'),
    'https://forum.moonshot.ai/t/api-billing-behaviour/111',
    [
      { codes: ['exceeded_current_quota_error', 'access_terminated_error'], kind: 'account_fault' },
      { ...PAYMENT, source: 'https://www.kimi.com/code/docs/en/kimi-code/error-reference.html' },
    ],
  ),
  ...lines(
    'MiniMax',
    host('minimax.io', 'minimaxi.com', 'minimax.chat'),
    'https://platform.minimax.io/docs/api-reference/errorcode',
    [
      { codes: ['insufficient_balance_error'], kind: 'account_fault' },
      { codes: ['1008'], kind: 'account_fault', isOnlyThere: true },
      { codes: ['1004', '2049'], kind: 'key_refused', isOnlyThere: true },
      { words: 'insufficient balance (1008)', kind: 'account_fault' },
      { words: 'invalid api key (2049)', kind: 'key_refused' },
    ],
  ),
  ...lines('Zhipu', host('bigmodel.cn', 'z.ai'), 'https://docs.z.ai/api-reference/api-code', [
    { codes: ['1000', '1001', '1002', '1003', '1004'], kind: 'key_refused', isOnlyThere: true },
    { codes: ['1110', '1111', '1112', '1113', '1121', '1309'], kind: 'account_fault', isOnlyThere: true },
    { codes: ['1220', '1311'], kind: 'account_lacks_model', isOnlyThere: true },
  ]),
  ...lines('Groq', host('groq.com'), 'https://github.com/songquanpeng/one-api/issues/1764', [
    { codes: ['organization_restricted'], kind: 'account_fault' },
    {
      codes: ['model_permission_blocked_org', 'model_permission_blocked_project'],
      kind: 'account_lacks_model',
      source: 'https://console.groq.com/docs/model-permissions',
    },
  ]),
  ...lines('Cerebras', host('cerebras.ai'), 'https://inference-docs.cerebras.ai/support/error', [PAYMENT]),
  ...lines('Together', host('together.xyz', 'together.ai'), 'https://docs.together.ai/docs/error-codes', [
    PAYMENT,
  ]),
  ...lines('Fireworks', host('fireworks.ai'), 'https://docs.fireworks.ai/guides/inference-error-codes', [
    PAYMENT,
    { status: [412], kind: 'account_fault', isOnlyThere: true },
  ]),
  ...lines('OpenRouter', host('openrouter.ai'), 'https://openrouter.ai/docs/api-reference/limits', [
    PAYMENT,
    {
      status: [403],
      words: 'This model is not available in your region.',
      kind: 'account_lacks_model',
      source: 'https://github.com/standardagents/dmux/issues/43',
    },
    // The settings of the account exclude the providers of the model.
    {
      status: [403],
      words: 'The request is prohibited due to a violation of provider Terms Of Service.',
      kind: 'account_lacks_model',
      source: 'https://github.com/Davidvandijcke/coarse/pull/193',
    },
  ]),
  ...lines(
    'SiliconFlow',
    host('siliconflow.cn', 'siliconflow.com'),
    'https://docs.siliconflow.cn/en/faqs/error-code',
    [{ status: [403], kind: 'account_lacks_model', isOnlyThere: true }],
  ),
  ...lines(
    'Volcengine',
    host('volces.com', 'bytepluses.com'),
    'https://www.volcengine.com/docs/82379/1299023',
    [
      { codes: ['AccountOverdueError', 'OperationDenied.ServiceOverdue'], kind: 'account_fault' },
      {
        codes: [
          'ModelNotOpen',
          'OperationDenied.ServiceNotOpen',
          'InvalidEndpointOrModel.ModelIDAccessDisabled',
        ],
        kind: 'account_lacks_model',
      },
    ],
  ),
  ...lines(
    'StepFun',
    host('stepfun.com', 'stepfun.ai'),
    'https://platform.stepfun.com/docs/zh/api-reference/error-codes',
    [PAYMENT],
  ),
  ...lines('Baidu', host('baidubce.com'), 'https://ai.baidu.com/ai-doc/AppBuilder/4m8sgh88y', [
    { codes: ['BILLING_INSUFFICIENT_BALANCE'], kind: 'account_fault' },
  ]),
]
