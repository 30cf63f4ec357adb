import { expect, test } from 'vitest'
import type { ServiceMatch } from './guard.ts'
import { maskedGuardMatch } from './guard-secrets.ts'

/** A service of each kind, as gateway.yaml has it, and as responses show it. */
const SERVICES: {
  readonly [Kind in ServiceMatch['kind']]: readonly [Extract<ServiceMatch, { kind: Kind }>, object]
} = {
  moderation: [
    { kind: 'moderation', model: 'm', thresholds: { hate: 0.5 } },
    { moderation: { model: 'm', thresholds: { hate: 0.5 } } },
  ],
  webhook: [
    {
      kind: 'webhook',
      url: 'https://guard.example',
      headers: { authorization: 'Bearer secret', 'x-key': 'another' },
    },
    { webhook: { url: 'https://guard.example', headers: { authorization: '***', 'x-key': '***' } } },
  ],
  presidio: [
    { kind: 'presidio', url: 'https://guard.example', language: 'en', score: 0.5, entities: ['PERSON'] },
    { presidio: { url: 'https://guard.example', language: 'en', score: 0.5, entities: ['PERSON'] } },
  ],
  bedrock: [
    {
      kind: 'bedrock',
      base_url: 'https://guard.example',
      region: 'eu-central-1',
      guardrail: 'g',
      version: '1',
      keys: ['one', 'two'],
    },
    {
      bedrock: {
        base_url: 'https://guard.example',
        region: 'eu-central-1',
        guardrail: 'g',
        version: '1',
        keys: ['***', '***'],
      },
    },
  ],
  lakera: [
    { kind: 'lakera', base_url: 'https://guard.example', key: 'secret', project_id: 'p' },
    { lakera: { base_url: 'https://guard.example', key: '***', project_id: 'p' } },
  ],
}

test.each(Object.values(SERVICES))(
  'what responses show of a guard service hides its secrets alone: $0.kind',
  (match, shown) => {
    expect(maskedGuardMatch(match)).toEqual(shown)
  },
)
