import { describe, expect, test } from 'vitest'
import { formatDiagnostic } from './diagnostics.ts'
import { parseYamlDocument } from './document.ts'
import { readFileContent } from './read-sections.ts'

function read(text: string) {
  const { content, diagnostics } = readFileContent(parseYamlDocument(text, () => undefined))
  return { content, said: diagnostics.map((one) => formatDiagnostic({ file: 'gateway.yaml', ...one })) }
}

const guard = (match: string): string => `guards:\n  - name: g\n    do: redact\n    match: ${match}\n`

test('a guard in gateway.yaml has the documented defaults where it sets nothing else', () => {
  expect(read(guard('{ secrets: true }')).content?.guards).toEqual([
    {
      name: 'g',
      where: ['input', 'output', 'tool_arguments', 'tool_results'],
      do: 'redact',
      mode: 'enforce',
      match: { kind: 'secrets', secrets: true },
      models: undefined,
      groups: undefined,
      users: undefined,
      tokens: undefined,
      sample: 1,
      timeout: 2_000,
      on_failure: 'block',
      charge: false,
      most_delay: 0,
      with: '[REDACTED]',
    },
  ])
})

test.each([
  ['{ regex: "a+b" }', { kind: 'regex', regex: ['a+b'], most: 256 }],
  ['{ regex: ["a", "b"], most: 10 }', { kind: 'regex', regex: ['a', 'b'], most: 10 }],
  ['{ words: [project x, yonder] }', { kind: 'words', words: ['project x', 'yonder'] }],
  ['{ pii: [email, iban] }', { kind: 'pii', pii: ['email', 'iban'] }],
  [
    '{ webhook: { url: "http://10.0.0.7:8080/guard/", headers: { authorization: "Bearer x" } } }',
    { kind: 'webhook', url: 'http://10.0.0.7:8080/guard', headers: { authorization: 'Bearer x' } },
  ],
  [
    '{ presidio: { url: "http://presidio:3000" } }',
    { kind: 'presidio', url: 'http://presidio:3000', language: 'en', score: 0.5, entities: [] },
  ],
  [
    '{ presidio: { url: "http://presidio:3000", language: de, score: 0.7, entities: [PERSON] } }',
    { kind: 'presidio', url: 'http://presidio:3000', language: 'de', score: 0.7, entities: ['PERSON'] },
  ],
  [
    '{ bedrock: { region: eu-west-1, guardrail: gr1, version: DRAFT, keys: ["AKIDEXAMPLE0000:wJalrXUtnFEMIK7MDENG"] } }',
    {
      kind: 'bedrock',
      base_url: 'https://bedrock-runtime.eu-west-1.amazonaws.com',
      region: 'eu-west-1',
      guardrail: 'gr1',
      version: 'DRAFT',
      keys: ['AKIDEXAMPLE0000:wJalrXUtnFEMIK7MDENG'],
    },
  ],
])('the match of a guard in gateway.yaml may be %s', (match, expected) => {
  expect(read(guard(match)).content?.guards[0]?.match).toEqual(expected)
})

test.each([
  ['{ moderation: { model: m } }', { kind: 'moderation', model: 'm', thresholds: {} }],
  [
    '{ moderation: { model: m, thresholds: { violence: 0.4 } } }',
    { kind: 'moderation', model: 'm', thresholds: { violence: 0.4 } },
  ],
  [
    '{ lakera: { key: k, project_id: p-1 } }',
    { kind: 'lakera', base_url: 'https://api.lakera.ai', key: 'k', project_id: 'p-1' },
  ],
])('the match of a guard in gateway.yaml that blocks calls may be %s', (match, expected) => {
  const text = `${guard(match).replace('redact', 'block')}    timeout: 500ms\n    on_failure: pass\n`
  expect(read(text).content?.guards[0]).toMatchObject({ match: expected, timeout: 500, on_failure: 'pass' })
})

describe('gateway.yaml is refused, with file and line, for', () => {
  test.each([
    [
      'a guard without a match',
      'guards:\n  - { name: g, do: flag }\n',
      /^gateway\.yaml:2: guards\[0\]\.match: expected a mapping with one of regex, words, secrets, pii/,
    ],
    [
      'a guard without an action',
      'guards:\n  - { name: g, match: { secrets: true } }\n',
      /^gateway\.yaml:2: guards\[0\]\.do: expected one of block, redact, replace, flag, found nothing$/,
    ],
    [
      'a guard without a name',
      'guards:\n  - { do: flag, match: { secrets: true } }\n',
      /^gateway\.yaml:2: guards\[0\]\.name: expected a name of 1 to 64 letters/,
    ],
    [
      'an unknown place',
      'guards:\n  - name: g\n    do: flag\n    where: [inputs]\n    match: { secrets: true }\n',
      /^gateway\.yaml:4: guards\[0\]\.where\[0\]: expected one of input, output, tool_arguments, tool_results \(input\?\)/,
    ],
    [
      'two kinds of match',
      guard('{ secrets: true, pii: [ip] }'),
      /^gateway\.yaml:4: guards\[0\]\.match: .*found secrets and pii$/,
    ],
    [
      'a kind of match that there is not',
      guard('{ oracle: true }'),
      /^gateway\.yaml:4: guards\[0\]\.match: .*found oracle$/,
    ],
    [
      'a regular expression that RE2 refuses',
      guard('{ regex: "(a" }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.regex: expected a regular expression in the syntax of RE2/,
    ],
    [
      'a regular expression that is too large',
      guard('{ regex: ["a", "[ab]{0,47}x"], most: 4096 }'),
      /^gateway\.yaml:4: guards\[0\]\.match: .*`\[ab\]\{0,47\}x` is too large: it has 49 instructions, and with most 4096 it may have 48$/,
    ],
    [
      'an unknown kind of personal data',
      guard('{ pii: [mail] }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.pii\[0\]: expected one of email, phone/,
    ],
    [
      'a charge without a price',
      `${guard('{ webhook: { url: "http://guard:1" } }')}    charge: true\n`,
      /^gateway\.yaml:5: guards\[0\]\.charge: expected false, as only calls of moderation have a price$/,
    ],
    [
      'a delay without a service',
      `${guard('{ secrets: true }')}    most_delay: 500\n`,
      /^gateway\.yaml:5: guards\[0\]\.most_delay: expected 0, as no service checks the texts$/,
    ],
    [
      'windows that are not longer than their overlap',
      `${guard('{ webhook: { url: "http://guard:1" } }')}    most_delay: 399\n`,
      /^gateway\.yaml:5: guards\[0\]\.most_delay: expected 0, or at least 400 characters, as windows overlap by 200$/,
    ],
    [
      'a redacting moderation',
      guard('{ moderation: { model: m } }'),
      /^gateway\.yaml:3: guards\[0\]\.do: expected block or flag, as moderation does not say where a match is, found redact$/,
    ],
    [
      'a replacing Lakera Guard',
      guard('{ lakera: { key: k } }').replace('redact', 'replace'),
      /^gateway\.yaml:3: guards\[0\]\.do: expected block or flag, as lakera does not say where a match is, found replace$/,
    ],
    [
      'an address with a password, which is not repeated',
      guard('{ webhook: { url: "http://me:hunter2@guard" } }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.webhook\.url: expected an http:\/\/ or https:\/\/ URL without a user.*found something else$/,
    ],
    [
      'the address of a metadata service',
      guard('{ presidio: { url: "http://169.254.169.254" } }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.presidio\.url: expected an http/,
    ],
    [
      'an unknown member of a service',
      guard('{ webhook: { url: "http://guard", header: {} } }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.webhook\.header: unknown key, expected headers$/,
    ],
    [
      'an unknown member beside a service',
      guard('{ webhook: { url: "http://guard" }, most: 3 }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.most: unknown key/,
    ],
    [
      'a header that the gateway sets itself',
      guard('{ webhook: { url: "http://guard", headers: { Host: a } } }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.webhook\.headers\.Host: expected another header/,
    ],
    [
      'a service without its address',
      guard('{ presidio: { language: en } }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.presidio\.url: expected an http.*found nothing$/,
    ],
    [
      'a score above 1',
      guard('{ moderation: { model: m, thresholds: { violence: 2 } } }').replace('redact', 'block'),
      /^gateway\.yaml:4: guards\[0\]\.match\.moderation\.thresholds\.violence: expected a score from 0 to 1, found 2$/,
    ],
    [
      'a key that is none, which is not repeated',
      guard('{ bedrock: { region: us-east-1, guardrail: g, version: 1, keys: ["AKIA:short"] } }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.bedrock\.keys\[0\]: expected ACCESS_KEY_ID:SECRET_ACCESS_KEY, or the same and :SESSION_TOKEN, found something else$/,
    ],
    [
      'a share above 1',
      `${guard('{ secrets: true }')}    sample: 2\n`,
      /^gateway\.yaml:5: guards\[0\]\.sample: expected a share from 0 to 1, found 2$/,
    ],
    [
      'two guards of one name',
      `${guard('{ secrets: true }')}  - { name: g, do: flag, match: { secrets: true } }\n`,
      /^gateway\.yaml:5: guards\[1\]\.name: expected a different name, another entry has the same$/,
    ],
    [
      'a group that names an unknown guard',
      `${guard('{ secrets: true }')}groups:\n  vip: { guards: [h] }\n`,
      /^gateway\.yaml:6: groups\.vip\.guards\[0\]: expected a guard that guards declares, found "h"$/,
    ],
    [
      'a token that names an unknown guard',
      'users:\n  - username: u\n    tokens:\n      - { name: t, unlimited_quota: true, guards: [h] }\n',
      /^gateway\.yaml:4: users\[0\]\.tokens\[0\]\.guards\[0\]: expected a guard that guards declares, found "h"$/,
    ],
  ])('an invalid or unknown guard in gateway.yaml is refused with file and line: %s', (_, text, expected) => {
    const { said } = read(text)
    expect(said).toHaveLength(1)
    expect(said[0]).toMatch(expected)
  })
})
