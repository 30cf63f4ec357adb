import { expect, test } from 'vitest'
import type { GuardMatch } from '../../domain/guard.ts'
import { maskedGuardMatch } from '../../domain/guard-secrets.ts'
import type { Json } from '../../domain/json.ts'
import { restoreHiddenSecrets } from './restore-hidden-secrets.ts'

const ADDRESS = 'https://guard.example'
const MATCHES: readonly GuardMatch[] = [
  { kind: 'webhook', url: ADDRESS, headers: { authorization: 'one', 'x-key': 'two' } },
  {
    kind: 'bedrock',
    base_url: ADDRESS,
    region: 'eu-central-1',
    guardrail: 'g',
    version: '1',
    keys: ['one', 'two'],
  },
  { kind: 'lakera', base_url: ADDRESS, key: 'one', project_id: 'p' },
]
const declared = ({ kind, ...members }: GuardMatch): Json => ({ [kind]: members }) as unknown as Json

test.each(MATCHES)('a guard that is saved as responses show it keeps its secrets: $kind', (match) => {
  expect(restoreHiddenSecrets(maskedGuardMatch(match) as Json, match)).toEqual(declared(match))
})

test.each(MATCHES)('a hidden secret is refused for a service at another address: $kind', (match) => {
  const moved = { ...match, [match.kind === 'webhook' ? 'url' : 'base_url']: 'https://other.example' }
  expect(() => restoreHiddenSecrets(maskedGuardMatch(moved) as Json, match)).toThrow('in full')
})

test('a hidden secret is refused where the guard has none at its place', () => {
  const shown = { bedrock: { base_url: ADDRESS, keys: ['***', '***', '***'] } }
  expect(() => restoreHiddenSecrets(shown, MATCHES[1])).toThrow('expected keys in full')
  const named = { webhook: { url: ADDRESS, headers: { constructor: '***' } } }
  expect(() => restoreHiddenSecrets(named, MATCHES[0])).toThrow('expected headers in full')
})

test('a text to search for that looks like a hidden secret stays as it is', () => {
  expect(restoreHiddenSecrets({ words: ['***'] }, undefined)).toEqual({ words: ['***'] })
})
