import { AWS_HOST } from '@sluice/wire/aws-domains'
import type { ProtocolName } from '@sluice/wire/protocols'
import type { Channel, ProviderName } from './records/channel.ts'

/** Values of `gen_ai.provider.name` that OpenTelemetry defines, by the channel's `provider`. */
const BY_PROVIDER: Readonly<Record<ProviderName, string>> = {
  azure: 'azure.ai.openai',
  bedrock: 'aws.bedrock',
  vertex: 'gcp.vertex_ai',
}

/**
 * Values of `gen_ai.provider.name` by the upstream's host name. Vendors for which OpenTelemetry defines none
 * have their usual name.
 */
const BY_HOST: readonly (readonly [RegExp, string])[] = [
  [/(?:^|\.)openai\.azure\.com$/, 'azure.ai.openai'],
  [/(?:^|\.)azure\.com$/, 'azure.ai.inference'],
  [/(?:^|\.)openai\.com$/, 'openai'],
  [/(?:^|\.)anthropic\.com$/, 'anthropic'],
  [/(?:^|\.)generativelanguage\.googleapis\.com$/, 'gcp.gemini'],
  [/aiplatform\.googleapis\.com$/, 'gcp.vertex_ai'],
  [/(?:^|\.)googleapis\.com$/, 'gcp.gen_ai'],
  [AWS_HOST, 'aws.bedrock'],
  [/(?:^|\.)mistral\.ai$/, 'mistral_ai'],
  [/(?:^|\.)deepseek\.com$/, 'deepseek'],
  [/(?:^|\.)x\.ai$/, 'x_ai'],
  [/(?:^|\.)cohere\.(?:ai|com)$/, 'cohere'],
  [/(?:^|\.)groq\.com$/, 'groq'],
  [/(?:^|\.)cerebras\.ai$/, 'cerebras'],
  [/(?:^|\.)perplexity\.ai$/, 'perplexity'],
  [/(?:^|\.)moonshot\.(?:ai|cn)$/, 'moonshot_ai'],
  [/(?:^|\.)cloud\.ibm\.com$/, 'ibm.watsonx.ai'],
  [/(?:^|\.)openrouter\.ai$/, 'openrouter'],
  [/(?:^|\.)together\.(?:ai|xyz)$/, 'together_ai'],
  [/(?:^|\.)fireworks\.ai$/, 'fireworks_ai'],
  [/(?:^|\.)aliyuncs\.com$/, 'alibaba_cloud'],
  [/(?:^|\.)(?:bigmodel\.cn|z\.ai)$/, 'zhipu_ai'],
  [/(?:^|\.)minimax(?:i)?\.(?:io|com|chat)$/, 'minimax'],
  [/(?:^|\.)jina\.ai$/, 'jina_ai'],
]

/**
 * Values of `gen_ai.provider.name` by model name, for servers whose host name is unknown: the model's maker.
 */
const BY_MODEL: readonly (readonly [RegExp, string])[] = [
  [/(?:^|[/.])claude/i, 'anthropic'],
  [/(?:^|[/.])gemini/i, 'gcp.gen_ai'],
  [/(?:^|\/)(?:gpt-\d|o[1-9](?:-|$)|chatgpt)/i, 'openai'],
  [/(?:^|\/)deepseek/i, 'deepseek'],
  [/(?:^|\/)(?:mistral|mixtral|codestral|ministral)/i, 'mistral_ai'],
  [/(?:^|\/)grok/i, 'x_ai'],
  [/(?:^|\/)kimi/i, 'moonshot_ai'],
  [/(?:^|\/)command-/i, 'cohere'],
]

/** Values of `gen_ai.provider.name` by the channel's protocol, if nothing else is known. */
const BY_PROTOCOL: Readonly<Record<ProtocolName, string>> = {
  chat: 'openai',
  responses: 'openai',
  messages: 'anthropic',
  gemini: 'gcp.gemini',
  converse: 'aws.bedrock',
  rerank: 'cohere',
}

/**
 * The value of `gen_ai.provider.name` for a channel. It depends on the channel's provider, otherwise its
 * host, otherwise the maker of the model, otherwise the channel's protocol. `docs/telemetry.md: Providers`.
 */
export function genAiProvider(
  { provider, base_url }: Pick<Channel, 'provider' | 'base_url'>,
  upstreamModel: string,
  dialect: ProtocolName,
): string {
  if (provider !== 'generic') return BY_PROVIDER[provider]
  const hostname = URL.parse(base_url)?.hostname ?? ''
  return (
    BY_HOST.find(([host]) => host.test(hostname))?.[1] ??
    BY_MODEL.find(([name]) => name.test(upstreamModel))?.[1] ??
    BY_PROTOCOL[dialect]
  )
}
