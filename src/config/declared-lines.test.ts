import { expect, test } from 'vitest'
import { declaredSettingsWithLines } from './declared-lines.ts'
import { parseYamlDocument } from './document.ts'

const TEXT = `options:
  retries: 2
  metrics_token: "a secret token of metrics"
  time: \${ZONE}
  smtp: { password: a secret of mails }
models:
  m:
    fallback: [a, b]
alerts:
  - url: https://example.com/secret
    secret: whsec_x
    events: [quota.low]
users:
  - username: ann
`

test('each setting of gateway.yaml is listed with its line and value; of a secret only "set" is shown; users are omitted', () => {
  const document = parseYamlDocument(TEXT, () => 'Europe/Berlin')
  expect(declaredSettingsWithLines(document, '/etc/sluice/gateway.yaml')).toEqual({
    file: 'gateway.yaml',
    items: [
      { path: 'options.retries', line: 2, value: 2 },
      { path: 'options.metrics_token', line: 3, value: 'set' },
      { path: 'options.time', line: 4, value: '${ZONE}' },
      { path: 'options.smtp.password', line: 5, value: 'set' },
      { path: 'alerts[0].url', line: 10, value: 'set' },
      { path: 'alerts[0].secret', line: 11, value: 'set' },
      { path: 'alerts[0].events', line: 12, value: ['quota.low'] },
      { path: 'models.m.fallback', line: 8, value: ['a', 'b'] },
    ],
  })
})

test('without a gateway.yaml the list of declared settings is empty', () => {
  expect(
    declaredSettingsWithLines(
      parseYamlDocument('', () => undefined),
      undefined,
    ),
  ).toEqual({ file: '', items: [] })
})
