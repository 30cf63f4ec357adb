import type { FileOptionName } from '../../../src/domain/options.ts'

/** A setting that only gateway.yaml can set, with a value as the file has it; the default where there is one. */
export type FileSetting<Name extends string> = readonly [name: Name, example: string]

export const RATE_LIMIT_SETTINGS = [
  ['global', '{ requests: 180, window: 180s }'],
  ['relay', '{ requests: 600, window: 60s }'],
  ['search', '{ requests: 10, window: 60s }'],
  ['critical', '{ requests: 20, window: 20m }'],
  ['key', '{ requests: 600, tokens: 1000000, window: 60s }'],
  ['console', '{ requests: 600, window: 60s }'],
] as const satisfies readonly FileSetting<string>[]

export const SIGN_IN_SETTINGS = [
  ['password', 'true'],
  [
    'oidc',
    '[ { name: corp, issuer: "https://id.example.com", client_id: sluice, client_secret: "${OIDC_SECRET}" } ]',
  ],
] as const satisfies readonly FileSetting<string>[]

const EXAMPLES: Readonly<Record<FileOptionName, string>> = {
  body_limit: '32MiB',
  max_calls: '8000',
  early_stream: '5s',
  hold_wait: '2s',
  unknown_tools: 'refuse',
  prices_file: 'prices.yaml',
  model_dates: 'true',
  remember_prompts: '1h',
  remember_prompts_max: '100000',
  affinity: '{ enabled: true }',
  keep_responses: '720h',
  keep_signatures: '24h',
  files: '{ keep: 720h, most: 10GiB }',
  batches: '{ most: 100, parallel: 8 }',
  local_batches: 'false',
  idempotency: '{ keep: 24h }',
  keep_bytes: '256MiB',
  media: '{ max_bytes: 20MiB, timeout: 10s }',
  cors: '{ origins: [ "https://app.example.com" ] }',
  public_url: 'https://ai.example.com',
  base_path: '/ai',
  console: 'true',
  trusted_proxies: '[ 10.0.0.0/8 ]',
  metrics_token: '"${METRICS_TOKEN}"',
  admin_listen: '127.0.0.1:9090',
  reuse_port: 'false',
  drain_timeout: '30s',
  websocket: '{ idle: 15m, age: 60m }',
  smtp: '{ host: mail.example.com, from: sluice@example.com }',
}

export const OPTION_SETTINGS: readonly FileSetting<FileOptionName>[] = (
  Object.keys(EXAMPLES) as FileOptionName[]
).map((name) => [name, EXAMPLES[name]])
