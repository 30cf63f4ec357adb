import type { ProtocolName } from '@sluice/wire/protocols'
import { expect, test } from 'vitest'
import { genAiProvider } from './gen-ai-provider.ts'
import type { Channel } from './records/channel.ts'

const OWN = 'http://10.0.0.1:8000/v1'

test.each<[string, Channel['provider'], string, string, ProtocolName, string]>([
  ['its provider', 'azure', 'https://x.openai.azure.com/openai', 'gpt-5.6', 'chat', 'azure.ai.openai'],
  [
    'its provider',
    'bedrock',
    'https://bedrock-runtime.eu-central-1.amazonaws.com',
    'claude',
    'converse',
    'aws.bedrock',
  ],
  ['its provider', 'vertex', OWN, 'claude-opus-5', 'messages', 'gcp.vertex_ai'],
  ['its host', 'generic', 'https://api.openai.com/v1', 'gpt-5.6', 'responses', 'openai'],
  [
    'its host',
    'generic',
    'https://generativelanguage.googleapis.com/v1beta',
    'gemini-3',
    'gemini',
    'gcp.gemini',
  ],
  ['its host', 'generic', 'https://b.eusc-de-east-1.amazonaws.eu', 'claude', 'messages', 'aws.bedrock'],
  ['its host', 'generic', 'https://b.cn-north-1.amazonaws.com.cn', 'claude', 'messages', 'aws.bedrock'],
  ['its host', 'generic', 'https://api.x.ai/v1', 'grok-5', 'chat', 'x_ai'],
  ['its host', 'generic', 'https://openrouter.ai/api/v1', 'anthropic/claude-opus-5', 'chat', 'openrouter'],
  ['the maker of the model', 'generic', OWN, 'deepseek-v4', 'chat', 'deepseek'],
  ['the maker of the model', 'generic', OWN, 'mistralai/Mistral-Large', 'chat', 'mistral_ai'],
  ['its dialect', 'generic', OWN, 'm', 'chat', 'openai'],
  ['its dialect', 'generic', OWN, 'm', 'messages', 'anthropic'],
  ['its dialect', 'generic', OWN, 'm', 'gemini', 'gcp.gemini'],
  ['its dialect', 'generic', 'no address', 'm', 'rerank', 'cohere'],
])(
  'the provider of a channel is reported in telemetry by %s (%s, %s, %s, %s)',
  (_, provider, base_url, model, dialect, name) => {
    expect(genAiProvider({ provider, base_url }, model, dialect)).toBe(name)
  },
)

test('a channel at notx.ai is not reported in telemetry as a channel of x.ai, whose name it only ends with', () => {
  expect(genAiProvider({ provider: 'generic', base_url: 'https://notx.ai/v1' }, 'm', 'chat')).toBe('openai')
})
