import { type FileOptionName, type OptionName, OPTIONS } from '../../../src/domain/options.ts'
import { durationText, sizeText } from '../../../src/domain/units.ts'

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

/** Options that are shown with their default, because it says something. */
type ShownByDefault = {
  [Name in FileOptionName]: (typeof OPTIONS)[Name] extends infer Row extends {
    readonly type: 'size' | 'duration' | 'retention' | 'integer' | 'flag'
  }
    ? Row extends { readonly default: 0 }
      ? never
      : Name
    : never
}[FileOptionName]

const EXAMPLES: Readonly<Record<Exclude<FileOptionName, ShownByDefault>, string>> = {
  early_stream: '5s',
  unknown_tools: 'refuse',
  prices_file: 'prices.yaml',
  affinity: '{ enabled: true }',
  keep_responses: '720h',
  files: '{ keep: 720h, most: 10GiB }',
  batches: '{ most: 100, parallel: 8 }',
  idempotency: '{ keep: 24h }',
  media: '{ max_bytes: 20MiB, timeout: 10s }',
  cors: '{ origins: [ "https://app.example.com" ] }',
  public_url: 'https://ai.example.com',
  base_path: '/ai',
  trusted_proxies: '[ 10.0.0.0/8 ]',
  metrics_token: '"${METRICS_TOKEN}"',
  admin_listen: '127.0.0.1:9090',
  websocket: '{ idle: 15m, age: 60m }',
  smtp: '{ host: mail.example.com, from: sluice@example.com }',
}

const examples: ReadonlyMap<string, string> = new Map(Object.entries(EXAMPLES))

export const OPTION_SETTINGS: readonly FileSetting<string>[] = Object.entries(OPTIONS).flatMap(
  ([name, row]) => {
    const example = examples.get(name) ?? defaultOf(row)
    return 'region' in row || name === 'cache' || example === undefined ? [] : [[name, example] as const]
  },
)

function defaultOf(row: (typeof OPTIONS)[OptionName]): string | undefined {
  if (row.type === 'size') return sizeText(row.default)
  if (row.type === 'duration' || row.type === 'retention') return durationText(row.default)
  return row.type === 'integer' || row.type === 'flag' ? String(row.default) : undefined
}
