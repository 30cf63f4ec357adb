import { describe, expect, test } from 'vitest'
import { formatDiagnostic } from './diagnostics.ts'
import { parseYamlDocument } from './document.ts'
import { readContent } from './read-sections.ts'

function read(text: string) {
  const { content, diagnostics } = readContent(parseYamlDocument(text, () => undefined))
  return { content, said: diagnostics.map((one) => formatDiagnostic({ file: 'gateway.yaml', ...one })) }
}

const guard = (match: string): string => `guards:\n  - name: g\n    do: redact\n    match: ${match}\n`

test('a guard has the documented defaults', () => {
  expect(read(guard('{ secrets: true }')).content?.guards).toEqual([
    {
      name: 'g',
      where: ['input', 'output', 'tool_arguments', 'tool_results'],
      do: 'redact',
      mode: 'enforce',
      match: { kind: 'secrets' },
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
  ['{ regex: "a+b" }', { kind: 'regex', patterns: ['a+b'], most: 256 }],
  ['{ regex: ["a", "b"], most: 10 }', { kind: 'regex', patterns: ['a', 'b'], most: 10 }],
  ['{ words: [project x, yonder] }', { kind: 'words', words: ['project x', 'yonder'] }],
  ['{ pii: [email, iban] }', { kind: 'pii', kinds: ['email', 'iban'] }],
])('a match may be %s', (match, expected) => {
  expect(read(guard(match)).content?.guards[0]?.match).toEqual(expected)
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
      'an unknown kind of personal data',
      guard('{ pii: [mail] }'),
      /^gateway\.yaml:4: guards\[0\]\.match\.pii\[0\]: expected one of email, phone/,
    ],
    [
      'a charge without a service',
      `${guard('{ secrets: true }')}    charge: true\n`,
      /^gateway\.yaml:5: guards\[0\]\.charge: expected false, as no service checks the texts$/,
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
  ])('%s', (_, text, expected) => {
    const { said } = read(text)
    expect(said).toHaveLength(1)
    expect(said[0]).toMatch(expected)
  })
})
