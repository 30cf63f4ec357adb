import { describe, expect, test } from 'vitest'
import { readFileContent } from './read-sections.ts'
import { parseYamlDocument } from './document.ts'
import { formatDiagnostic } from './diagnostics.ts'

const variables = new Map([
  ['KEY', 'super-secret'],
  ['EMPTY', ''],
])

/** The diagnostics of a file, formatted. */
function said(text: string): string[] {
  const { diagnostics } = readFileContent(parseYamlDocument(text, (name) => variables.get(name)))
  return diagnostics.map((diagnostic) => formatDiagnostic({ file: 'gateway.yaml', ...diagnostic }))
}

function channel(lines: string): string {
  const fields = new Map([
    ['name', 'a'],
    ['protocol', 'chat'],
    ['base_url', 'https://a.example/v1'],
    ['models', '[m]'],
  ])
  for (const line of lines.split('\n')) {
    const [, key = '', value = ''] = /^(\w+): ?(.*)$/.exec(line) ?? []
    fields.set(key, value)
  }
  const [first, ...rest] = [...fields].filter(([key]) => key !== '').map(([key, value]) => `${key}: ${value}`)
  return [`channels:`, `  - ${first}`, ...rest.map((line) => `    ${line}`)].join('\n')
}

function token(lines: string): string {
  const all = `name: t\nunlimited_quota: true\n${lines}`.split('\n')
  return `users:\n  - username: u\n    tokens:\n      - ${all.join('\n        ')}`
}

/** A description, the file, and its diagnostics. */
type Case = readonly [what: string, file: string, ...said: string[]]

// One long table with all errors that a file can have, in the order of the documentation.

const YAML: Case[] = [
  [
    'a syntax error',
    'options:\n  retries: [2\n',
    'gateway.yaml:3: expected YAML: Flow sequence in block collection must be sufficiently indented and end with a ], at column 1',
  ],
  [
    'a second document',
    'options: {}\n---\noptions: {}\n',
    'gateway.yaml:2: expected one YAML document, found a second one',
  ],
  [
    'a second document behind the end of the first',
    '---\noptions: {}\n...\noptions: {}\n',
    'gateway.yaml:4: expected one YAML document, found a second one',
  ],
  [
    'an empty second document',
    'options: {}\n---\n---\noptions: {}\n',
    'gateway.yaml:2: expected one YAML document, found a second one',
  ],
  [
    'another version of YAML',
    '%YAML 1.1\n---\noptions: {}\n',
    'gateway.yaml:1: expected no directive but %YAML 1.2, found %YAML 1.1',
  ],
  [
    'a tag of its own',
    '%TAG !m! tag:example.com,2000:\n---\noptions: {}\n',
    'gateway.yaml:1: expected no directive but %YAML 1.2, found %TAG !m!',
  ],
  ['a tag at a key', 'options:\n  !!int retries: 2\n', 'gateway.yaml:2: expected a name as the key'],
  [
    'an unknown tag',
    'options:\n  display: !money USD\n',
    'gateway.yaml:2: expected YAML: Unresolved tag: !money, at column 12',
  ],
  [
    'a variable in a list without quotes',
    'channels:\n  - keys: [${KEY}]\n',
    'gateway.yaml:2: expected YAML: Missing , or : between flow sequence items, at column 13 (a value with ${NAME} in a [list] needs quotes)',
  ],
  [
    'a key written twice',
    'options:\n  retries: 1\n  hold_tokens: 1\n  retries: 2\n',
    'gateway.yaml:4: options.retries: expected this key once, it is already on line 2',
  ],
  [
    'a key that is no name',
    'options:\n  __proto__: 1\n',
    'gateway.yaml:2: options: expected a name as the key',
  ],
  [
    'an alias to nothing',
    'options:\n  retries: *two\n',
    'gateway.yaml:2: options.retries: expected the anchor &two further up',
  ],
  [
    'a circle of aliases',
    'options: &o\n  media: *o\n',
    `gateway.yaml:2: options${'.media'.repeat(32)}: expected at most 32 levels`,
    'gateway.yaml:2: options.media.media: unknown key, expected one of allow_private_networks, max_bytes, timeout',
  ],
  [
    'a list where the sections should be',
    '- options\n',
    'gateway.yaml:1: expected a mapping with options, rate_limits, groups, models, channels, users, login, alerts, guards, content_log, mcp, found a list',
  ],
  [
    'a text where the sections should be',
    'options\n',
    'gateway.yaml:1: expected a mapping with options, rate_limits, groups, models, channels, users, login, alerts, guards, content_log, mcp, found "options"',
  ],
]

const VARIABLES: Case[] = [
  [
    'a variable that is not set',
    channel('keys: ["${NOBODY_KNOWS}"]'),
    'gateway.yaml:6: channels[0].keys[0]: expected the environment variable NOBODY_KNOWS to be set',
  ],
  [
    'several that are not set, each once',
    'options:\n  display: ${ONE}${TWO}\n',
    'gateway.yaml:2: options.display: expected the environment variable ONE to be set',
    'gateway.yaml:2: options.display: expected the environment variable TWO to be set',
  ],
  [
    'a reference that is not closed',
    'options:\n  metrics_token: a${KEY\n',
    'gateway.yaml:2: options.metrics_token: expected ${NAME} or ${NAME:-default}; a literal ${ is written $${',
  ],
  [
    'a reference without a name',
    'options:\n  metrics_token: a${}\n',
    'gateway.yaml:2: options.metrics_token: expected ${NAME} or ${NAME:-default}; a literal ${ is written $${',
  ],
  [
    'a wrong value from a variable, without showing it',
    channel('base_url: ${KEY}'),
    'gateway.yaml:4: channels[0].base_url: expected an http:// or https:// URL, found "${KEY}"',
  ],
  [
    'an empty key from a variable',
    channel('keys: ["${EMPTY}"]'),
    'gateway.yaml:6: channels[0].keys[0]: expected a key: printable characters without spaces, found something else',
  ],
]

const ALERT_URL_EXPECTED =
  "expected an http:// or https:// URL without a user and password, and not of a cloud's metadata service, or mailto: with addresses, found something else"
const ALERT_SECRET = `whsec_${'A'.repeat(32)}`
const alert = (fields: string): string => `alerts:\n  - ${fields}\n    events: [quota.low]\n`

const ALERTS: Case[] = [
  [
    'a receiver that is not reached over HTTP, without showing its address',
    alert(`url: "ftp://alerts.example/s3cret"\n    secret: ${ALERT_SECRET}`),
    `gateway.yaml:2: alerts[0].url: ${ALERT_URL_EXPECTED}`,
  ],
  [
    "a cloud's metadata service as a receiver",
    alert(`url: "http://169.254.169.254/latest"\n    secret: ${ALERT_SECRET}`),
    `gateway.yaml:2: alerts[0].url: ${ALERT_URL_EXPECTED}`,
  ],
  [
    'a signing secret that is too short, without showing it',
    alert('url: "https://alerts.example"\n    secret: whsec_c2hvcnQ='),
    'gateway.yaml:3: alerts[0].secret: expected whsec_ and 24 to 64 bytes in base64, as echo "whsec_$(openssl rand -base64 32)" makes them, found something else',
  ],
  [
    'an unknown event',
    `alerts:\n  - { url: "https://a.example", secret: ${ALERT_SECRET}, events: [quota.lo] }\n`,
    'gateway.yaml:2: alerts[0].events[0]: expected one of budget.80, budget.100, quota.low, channel.resting, channel.no_key, channel.back, gateway.overloaded, price.incomplete, usage.implausible, model.ending, provider.limit, config.refused, mcp.tool_changed, storage.failed, storage.back (quota.low?), found "quota.lo"',
  ],
  [
    'a receiver of nothing',
    `alerts:\n  - { url: "https://a.example", secret: ${ALERT_SECRET} }\n`,
    'gateway.yaml:2: alerts[0].events: expected a list of at least one event, found nothing',
  ],
  [
    'one receiver twice',
    `${alert(`url: "https://a.example"\n    secret: ${ALERT_SECRET}`)}  - { url: "https://a.example", secret: ${ALERT_SECRET}, events: [channel.back] }\n`,
    'gateway.yaml:5: alerts[1].url: expected a different url, another entry has the same',
  ],
  [
    'a threshold below zero',
    'options:\n  quota_low: -1\n',
    'gateway.yaml:2: options.quota_low: expected a decimal number from 0 to 1000000, found -1',
  ],
]

const OPTIONS: Case[] = [
  ['an unknown section', 'chanels: []\n', 'gateway.yaml:1: chanels: unknown key, expected channels'],
  [
    'an unknown period of a budget',
    'groups:\n  sales: { budget: 5, budget_period: year }\n',
    'gateway.yaml:2: groups.sales.budget_period: expected one of day, week, month, found "year"',
  ],
  [
    'a budget without a period',
    'users:\n  - username: ann\n    budget: 5\n',
    'gateway.yaml:2: users[0].budget_period: expected one of day, week, month, found nothing',
  ],
  [
    'a period without a budget',
    'users:\n  - username: ann\n    budget_period: day\n',
    'gateway.yaml:2: users[0].budget: expected a budget for budget_period, found nothing',
  ],
  [
    'a rate limit that is none',
    'users:\n  - username: ann\n    rate_limit: { parallel: many }\n',
    'gateway.yaml:3: users[0].rate_limit.parallel: expected a whole number from 0 to 1000000000000, found "many"',
  ],
  [
    'an unknown key',
    'options:\n  retrys: 2\n',
    'gateway.yaml:2: options.retrys: unknown key, expected retries',
  ],
  [
    'an unknown key that is like nothing',
    'options:\n  media:\n    colour: red\n',
    'gateway.yaml:3: options.media.colour: unknown key, expected one of allow_private_networks, max_bytes, timeout',
  ],
  [
    'an unknown key without a value',
    'options:\n  retrys:\n',
    'gateway.yaml:2: options.retrys: unknown key, expected retries',
  ],
  [
    'a section that is a list',
    'options: [1]\n',
    'gateway.yaml:1: options: expected a mapping with quota_per_unit, display, usd_exchange_rate, token_stats, max_user_tokens, body_limit, prices_file, unpriced_models, unknown_tools, hold_tokens, hold_wait, remember_prompts, remember_prompts_max, affinity, cache, model_dates, pass_through, retries, early_stream, trusted_proxies, metrics_token, admin_listen, reuse_port, error_details, usage_log_days, refusals_kept, quota_low, slot_days, max_calls, drain_timeout, keep_responses, keep_signatures, idempotency, files, batches, local_batches, keep_bytes, console, media, cors, smtp, websocket, base_path, public_url, found a list',
  ],
  [
    'an unknown scope of the cache',
    'options:\n  cache: { scope: tokens }\n',
    'gateway.yaml:2: options.cache.scope: expected one of token, user, group (token?), found "tokens"',
  ],
  [
    'a price of cached answers above the whole',
    'options:\n  cache: { price: 1.5 }\n',
    'gateway.yaml:2: options.cache.price: expected a decimal number from 0 to 1, found 1.5',
  ],
  [
    'an unknown key of the cache',
    'options:\n  cache:\n    age: 1h\n',
    'gateway.yaml:3: options.cache.age: unknown key, expected one of ttl, max_ttl, scope, most, price',
  ],
  [
    'a word for the cache',
    'options:\n  cache: on\n',
    'gateway.yaml:2: options.cache: expected a mapping with ttl, max_ttl, scope, most, price, found "on"',
  ],
  [
    'WebSockets of a channel without responses',
    'channels:\n  - { name: a, protocol: chat, base_url: "https://example.com/v1", keys: [k], models: [m], websocket: true }\n',
    'gateway.yaml:2: channels[0].websocket: only channels with protocol responses have WebSockets',
  ],
  [
    'files that are not kept',
    'options:\n  files: { keep: 0 }\n',
    'gateway.yaml:2: options.files.keep: expected a duration such as 24h or 30d, found 0',
  ],
  [
    'a folder for files that is not absolute',
    'options:\n  files: { store: files }\n',
    'gateway.yaml:2: options.files.store: expected an absolute path, or s3://BUCKET/PREFIX, found "files"',
  ],
  [
    'a region of a folder for files',
    'options:\n  files: { store: /srv/files, region: eu-central-1 }\n',
    'gateway.yaml:2: options.files.region: expected only with store: s3://BUCKET/PREFIX',
  ],
  [
    'batches of providers that are read without a pause',
    'options:\n  batches: { poll: 0s, poll_most: 0s }\n',
    'gateway.yaml:2: options.batches.poll: expected a duration from 1ms to 596h, found "0s"',
    'gateway.yaml:2: options.batches.poll_most: expected a duration from 1ms to 596h, found "0s"',
  ],
  [
    'a time for which answers of a model are kept without a unit',
    'models:\n  m: { cache: 10 }\n',
    'gateway.yaml:2: models.m.cache: expected a duration such as 24h or 720h, or 0, found 10',
  ],
  [
    'a word for a number',
    'options:\n  retries: many\n',
    'gateway.yaml:2: options.retries: expected a whole number from 0 to 100, found "many"',
  ],
  [
    'a fraction for a whole number',
    'options:\n  hold_tokens: 1.5\n',
    'gateway.yaml:2: options.hold_tokens: expected a whole number from 1 to 100000000, found 1.5',
  ],
  [
    'no quota for a unit',
    'options:\n  quota_per_unit: 0\n',
    'gateway.yaml:2: options.quota_per_unit: expected a whole number from 1 to 9000000, found 0',
  ],
  [
    'a word for true',
    'options:\n  token_stats: yes\n',
    'gateway.yaml:2: options.token_stats: expected true or false, found "yes"',
  ],
  [
    'a word out of another list',
    'options:\n  unpriced_models: refused\n',
    'gateway.yaml:2: options.unpriced_models: expected one of refuse, free (refuse?), found "refused"',
  ],
  [
    'an exchange rate of nothing',
    'options:\n  usd_exchange_rate: 0\n',
    'gateway.yaml:2: options.usd_exchange_rate: expected a decimal number above 0 and up to 1000000, found 0',
  ],
  [
    'a size in a unit that there is not',
    'options:\n  body_limit: 32Mb\n',
    'gateway.yaml:2: options.body_limit: expected a size such as 32MiB, 20MB or 1048576, found "32Mb"',
  ],
  [
    'a size out of bounds',
    'options:\n  body_limit: 5B\n',
    'gateway.yaml:2: options.body_limit: expected a size from 1024 to 1073741824 bytes, found "5B"',
  ],
  [
    'a duration without a unit',
    'options:\n  media: { timeout: 10 }\n',
    'gateway.yaml:2: options.media.timeout: expected a duration such as 500ms, 5s, 20m or 1h, found 10',
  ],
  [
    'a duration of nothing',
    'options:\n  media: { timeout: 0s }\n',
    'gateway.yaml:2: options.media.timeout: expected a duration from 1ms to 596h, found "0s"',
  ],
  [
    'a duration that no timer can wait',
    'options:\n  media: { timeout: 600h }\n',
    'gateway.yaml:2: options.media.timeout: expected a duration from 1ms to 596h, found "600h"',
  ],
  [
    'a text of another origin in place of a list',
    'options:\n  cors:\n    origins: "https://app.example.com"\n',
    'gateway.yaml:3: options.cors.origins: expected a list of origins, or "*", found "https://app.example.com"',
  ],
  [
    'an origin with a path',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "https://app.example.com/"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "https://app.example.com/"',
  ],
  [
    'an origin with capitals',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "https://App.example.com"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "https://App.example.com"',
  ],
  [
    "an origin with the scheme's own port",
    'options:\n  cors:\n    origins:\n      - "*"\n      - "https://app.example.com:443"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "https://app.example.com:443"',
  ],
  [
    'an origin without a scheme',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "app.example.com"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "app.example.com"',
  ],
  [
    'an origin that is a pattern',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "https://*.example.com"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "https://*.example.com"',
  ],
  [
    'an origin that is none',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "null"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "null"',
  ],
  [
    'an origin with credentials',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "https://me@app.example.com"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "https://me@app.example.com"',
  ],
  [
    'an origin in another alphabet',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "https://müller.example"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "https://müller.example"',
  ],
  [
    'an origin without a host',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "file://"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "file://"',
  ],
  [
    'an origin with a line break',
    'options:\n  cors:\n    origins:\n      - "*"\n      - "https://a\\nb"\n',
    'gateway.yaml:5: options.cors.origins[1]: expected an origin such as https://app.example.com, without a path, or "*", found "https://a\\nb"',
  ],
  [
    'a bad CIDR',
    'options:\n  trusted_proxies:\n    - 10.0.0.0/8\n    - 10.0.0.0/33\n',
    'gateway.yaml:4: options.trusted_proxies[1]: expected an address or CIDR such as 10.0.0.0/8, found "10.0.0.0/33"',
  ],
  [
    'a text for a list',
    'options:\n  trusted_proxies: 10.0.0.0/8\n',
    'gateway.yaml:2: options.trusted_proxies: expected a list of addresses and CIDRs, found "10.0.0.0/8"',
  ],
  [
    'a number for a text',
    'options:\n  metrics_token: 12345\n',
    'gateway.yaml:2: options.metrics_token: expected printable characters without spaces, found something else',
  ],
]

const LIMITS_AND_GROUPS: Case[] = [
  [
    'an unknown limit',
    'rate_limits:\n  serach: { requests: 1 }\n',
    'gateway.yaml:2: rate_limits.serach: unknown key, expected search',
  ],
  [
    'tokens where none are counted',
    'rate_limits:\n  search: { requests: 1, tokens: 1 }\n',
    'gateway.yaml:2: rate_limits.search.tokens: unknown key, expected one of requests, window',
  ],
  [
    'a limit below zero',
    'rate_limits:\n  key: { requests: -1 }\n',
    'gateway.yaml:2: rate_limits.key.requests: expected a whole number from 0 to 1000000000000, found -1',
  ],
  [
    'a bad window',
    'rate_limits:\n  key: { requests: 1, window: 1 minute }\n',
    'gateway.yaml:2: rate_limits.key.window: expected a duration such as 500ms, 5s, 20m or 1h, found "1 minute"',
  ],
  [
    'a ratio below zero',
    'groups:\n  vip:\n    ratio: -0.8\n',
    'gateway.yaml:3: groups.vip.ratio: expected a decimal number from 0 to 1000000, found -0.8',
  ],
  [
    'a ratio that is no number',
    'groups:\n  vip:\n    ratio: half\n',
    'gateway.yaml:3: groups.vip.ratio: expected a decimal number from 0 to 1000000, found "half"',
  ],
  [
    'an MCP server with an underscore in its name',
    "mcp:\n  servers:\n    - { name: my_tools, url: 'http://a/mcp' }\n",
    'gateway.yaml:3: mcp.servers[0].name: expected a name of 1 to 32 lowercase letters, digits and hyphens that begins with a letter, found "my_tools"',
  ],
  [
    'an MCP server at a metadata address',
    "mcp: { servers: [{ name: a, url: 'http://[::ffff:169.254.169.254]/' }] }\n",
    "gateway.yaml:1: mcp.servers[0].url: expected an http:// or https:// URL without a user and a fragment, and not of a cloud's metadata service, found something else",
  ],
  [
    'credentials of an MCP server without their kind',
    "mcp: { servers: [{ name: a, url: 'http://a', client_id: b }] }\n",
    'gateway.yaml:1: mcp.servers[0].client_id: expected no client_id with auth: none',
  ],
  [
    'a toolset with a pattern without a server',
    'mcp: { toolsets: [{ name: a, tools: [search] }] }\n',
    'gateway.yaml:1: mcp.toolsets[0].tools[0]: expected a pattern SERVER.NAME, in which * stands for any characters, found "search"',
  ],
  [
    'an API key with a toolset that is not declared',
    'users: [{ id: 1, username: a, quota: 0, tokens: [{ name: t, unlimited_quota: true, toolsets: [none] }] }]\n',
    'gateway.yaml:1: users[0].tokens[0].toolsets[0]: expected a toolset that mcp.toolsets declares, found "none"',
  ],
  [
    'two MCP servers of one name',
    "mcp: { servers: [{ name: a, url: 'http://a' }, { name: a, url: 'http://b' }] }\n",
    'gateway.yaml:1: mcp.servers[1].name: expected a different name, another entry has the same',
  ],
  [
    'a level of the content log that there is not',
    'content_log:\n  what: ful\n',
    'gateway.yaml:2: content_log.what: expected one of none, metadata, redacted, full (full?), found "ful"',
  ],
  [
    'a share above one',
    'content_log:\n  sample: 2\n',
    'gateway.yaml:2: content_log.sample: expected a number from 0 to 1, found 2',
  ],
  [
    'content that is kept for no time',
    'groups: { vip: { content_log: { keep: 0d } } }\n',
    'gateway.yaml:1: groups.vip.content_log.keep: expected a duration from 1s to 3650d, found "0d"',
  ],
  [
    'a place of the content log that there is not',
    'content_log: { store: files }\n',
    'gateway.yaml:1: content_log.store: expected database, or s3://BUCKET/PREFIX, found "files"',
  ],
  [
    'a bucket without a name',
    'content_log: { store: "s3:///prefix" }\n',
    'gateway.yaml:1: content_log.store: expected s3:// and the name of a bucket, found "s3:///prefix"',
  ],
  [
    'a prefix that leaves its bucket',
    'content_log: { store: "s3://bucket/a/../b" }\n',
    'gateway.yaml:1: content_log.store: expected a prefix of letters, digits, ".", "-", "_" and single slashes, found "s3://bucket/a/../b"',
  ],
  [
    'an endpoint with credentials',
    'content_log: { store: "s3://bucket", endpoint: "https://me:secret@s3.example" }\n',
    'gateway.yaml:1: content_log.endpoint: expected a URL without a user or password (credentials go to keys or headers), found "https://me:secret@s3.example"',
  ],
  [
    'a region that is none',
    'content_log: { store: "s3://bucket", region: "EU/1" }\n',
    'gateway.yaml:1: content_log.region: expected the name of a region such as eu-central-1, found "EU/1"',
  ],
  [
    'an endpoint without a bucket',
    'content_log:\n  endpoint: https://s3.example\n  region: eu-central-1\n',
    'gateway.yaml:2: content_log.endpoint: expected only with store: s3://BUCKET/PREFIX',
    'gateway.yaml:3: content_log.region: expected only with store: s3://BUCKET/PREFIX',
  ],
  [
    'common users as readers',
    'content_log: { readers: 1 }\n',
    'gateway.yaml:1: content_log.readers: expected one of 10, 100 (10?), found 1',
  ],
  [
    'groups in a list',
    'groups: [vip]\n',
    'gateway.yaml:1: groups: expected a mapping from group names, found a list',
  ],
]

const MODELS: Case[] = [
  [
    'a price below zero',
    'models:\n  m:\n    price:\n      input: -1\n      output: 2\n',
    'gateway.yaml:4: models.m.price.input: expected a decimal number from 0 to 1000000, found -1',
  ],
  [
    'a price with more places than can be charged',
    'models:\n  m:\n    price: { input: 0.000000000000000000001, output: 2 }\n',
    'gateway.yaml:3: models.m.price.input: expected a decimal number with at most 20 places, found 0.000000000000000000001',
  ],
  [
    'a price that is infinite',
    'models:\n  m:\n    price: { input: .inf, output: 2 }\n',
    'gateway.yaml:3: models.m.price.input: expected a decimal number from 0 to 1000000, found .inf',
  ],
  [
    'no price for the output',
    'models:\n  m:\n    price: { input: 1 }\n',
    'gateway.yaml:3: models.m.price.output: expected a price per million tokens (0 if it is free), found nothing',
  ],
  [
    'an empty price',
    'models:\n  m:\n    price: {}\n',
    'gateway.yaml:3: models.m.price.input: expected a price per million tokens (0 if it is free), found nothing',
    'gateway.yaml:3: models.m.price.output: expected a price per million tokens (0 if it is free), found nothing',
  ],
  [
    'a price that is a number',
    'models:\n  m: { price: 3 }\n',
    'gateway.yaml:2: models.m.price: expected a mapping with input, output, cache_read, cache_write_5m, cache_write_1h, cache_write_30m, cache_write_12h, audio_input, audio_output, image_input, image_output, audio_cache_read, image_cache_read, request, web_search, tools, characters, second, search_unit, image, tiers, service, regions, found 3',
  ],
  [
    'a price per image of a form that no image has',
    'models:\n  m: { price: { image: { "a b": 1 } } }\n',
    'gateway.yaml:2: models.m.price.image["a b"]: expected SIZE, SIZE/QUALITY or default, such as 1024x1024/hd',
  ],
  [
    'a price per image without any',
    'models:\n  m: { price: { image: {} } }\n',
    'gateway.yaml:2: models.m.price.image: expected a price per image, found nothing',
  ],
  [
    'a price per image that is no number',
    'models:\n  m: { price: { image: { default: much } } }\n',
    'gateway.yaml:2: models.m.price.image.default: expected a decimal number from 0 to 1000000, found "much"',
  ],
  [
    'a price of audio without one of text',
    'models:\n  m: { price: { second: 1, audio_input: 2, output: 0 } }\n',
    'gateway.yaml:2: models.m.price.input: expected a price per million tokens (0 if it is free), found nothing',
  ],
  [
    'an unknown kind of price',
    'models:\n  m: { price: { input: 1, output: 1, cache_write: 1 } }\n',
    'gateway.yaml:2: models.m.price.cache_write: unknown key, expected cache_write_5m',
  ],
  [
    'a tier without an output price',
    'models:\n  m:\n    price:\n      input: 1\n      output: 2\n      tiers:\n        - { above: 10, input: 2 }\n',
    'gateway.yaml:7: models.m.price.tiers[0].output: expected a decimal number from 0 to 1000000, found nothing',
  ],
  [
    'tiers out of order',
    'models:\n  m:\n    price:\n      input: 1\n      output: 2\n      tiers:\n        - { above: 10, input: 2, output: 2 }\n        - { above: 10, input: 3, output: 3 }\n',
    'gateway.yaml:8: models.m.price.tiers[1].above: expected more than 10, found 10',
  ],
  [
    'a name with dots, in brackets',
    'models:\n  gpt-4.1: { vendr: openai }\n',
    'gateway.yaml:2: models["gpt-4.1"].vendr: unknown key, expected vendor',
  ],
]

const CHANNELS: Case[] = [
  [
    'nothing but a name',
    'channels:\n  - name: a\n',
    'gateway.yaml:2: channels[0].protocol: expected one of chat, messages, responses, gemini, converse, rerank, found nothing',
    'gateway.yaml:2: channels[0].base_url: expected an http:// or https:// URL, found nothing',
    'gateway.yaml:2: channels[0].models: expected a list of at least one model, found nothing',
  ],
  [
    'a list of protocols with an unknown one',
    channel('protocol: [chat, response]'),
    'gateway.yaml:3: channels[0].protocol[1]: expected one of chat, messages, responses, gemini, converse, rerank (responses?), found "response"',
  ],
  [
    'a list of protocols with one twice',
    channel('protocol: [chat, chat]'),
    'gateway.yaml:3: channels[0].protocol[1]: expected each entry once, this is entry 0 again',
  ],
  [
    'batches with a protocol that has no batch API',
    channel('protocol: rerank\nbatches: true'),
    'gateway.yaml:6: channels[0].batches: this provider or protocol has no batch API that the gateway uses',
  ],
  [
    'batches with Azure and a protocol whose batch API it does not have',
    channel('provider: azure\nprotocol: messages\nbatches: true'),
    'gateway.yaml:7: channels[0].batches: this provider or protocol has no batch API that the gateway uses',
  ],
  [
    'batches with Vertex AI',
    channel('provider: vertex\nprotocol: gemini\nproject: p\nlocation: global\nbatches: true'),
    'gateway.yaml:9: channels[0].batches: this provider or protocol has no batch API that the gateway uses',
  ],
  [
    'batches with a provider whose batch API is not used',
    channel(
      'provider: bedrock\nprotocol: converse\nregion: eu-west-1\nkeys: [AKIDEXAMPLE0000:wJalrXUtnFEMIK7MDENG]\nbatches: only',
    ),
    'gateway.yaml:9: channels[0].batches: this provider or protocol has no batch API that the gateway uses',
  ],
  [
    'an empty list of protocols',
    channel('protocol: []'),
    'gateway.yaml:3: channels[0].protocol: expected a list of at least one protocol, found nothing',
  ],
  [
    'an unknown protocol',
    channel('protocol: chats'),
    'gateway.yaml:3: channels[0].protocol: expected one of chat, messages, responses, gemini, converse, rerank (chat?), found "chats"',
  ],
  [
    'a URL of another scheme',
    channel('base_url: ftp://a.example'),
    'gateway.yaml:4: channels[0].base_url: expected an http:// or https:// URL, found "ftp://a.example"',
  ],
  [
    'a URL that is none',
    channel('base_url: api.example.com'),
    'gateway.yaml:4: channels[0].base_url: expected an http:// or https:// URL, found "api.example.com"',
  ],
  [
    'a URL with a user',
    channel('base_url: https://u:p@a.example/v1'),
    'gateway.yaml:4: channels[0].base_url: expected a URL without a user or password (credentials go to keys or headers), found "https://u:p@a.example/v1"',
  ],
  [
    'a URL with a query',
    channel('base_url: https://a.example/v1?x=1'),
    'gateway.yaml:4: channels[0].base_url: expected a URL without ? or #, found "https://a.example/v1?x=1"',
  ],
  [
    'a URL with a fragment',
    channel('base_url: "https://a.example/v1#x"'),
    'gateway.yaml:4: channels[0].base_url: expected a URL without ? or #, found "https://a.example/v1#x"',
  ],
  [
    'a URL of an endpoint',
    channel('base_url: https://a.example/v1/chat/completions/'),
    'gateway.yaml:4: channels[0].base_url: expected a URL up to and including the version, /chat/completions is added, found "https://a.example/v1/chat/completions/"',
  ],
  [
    'no models',
    channel('models: []'),
    'gateway.yaml:5: channels[0].models: expected a list of at least one model, found nothing',
  ],
  [
    'a proxy of an unknown kind',
    channel('proxy: "https://ann:secret@proxy.example"'),
    'gateway.yaml:6: channels[0].proxy: expected http://USER:PASSWORD@HOST:PORT, or the same with socks5://, found something else',
  ],
  [
    'an override of a member that the gateway sets',
    channel('override: { set: { model: x } }'),
    'gateway.yaml:6: channels[0].override.set.model: expected a member that the gateway does not set itself',
  ],
  [
    'an override under an unknown key',
    channel('override: { sets: { temperature: 1 } }'),
    'gateway.yaml:6: channels[0].override.sets: unknown key, expected set',
  ],
  [
    'a model twice',
    channel('models: [m, m]'),
    'gateway.yaml:5: channels[0].models[1]: expected each entry once, this is entry 0 again',
  ],
  [
    'a model that YAML takes for a number',
    channel('models: [4.1]'),
    'gateway.yaml:5: channels[0].models[0]: expected the name of a model (1 to 200 characters, in quotes if it looks like a number), found 4.1',
  ],
  [
    'a nothing in a list',
    channel('models: [m, null]'),
    'gateway.yaml:5: channels[0].models[1]: expected the name of a model (1 to 200 characters, in quotes if it looks like a number), found nothing',
  ],
  [
    'a key with a space',
    channel('keys: [a b]'),
    'gateway.yaml:6: channels[0].keys[0]: expected a key: printable characters without spaces, found something else',
  ],
  [
    'a group that nobody declared',
    `groups: { premium: {} }\n${channel('groups: [default, premum]')}`,
    'gateway.yaml:7: channels[0].groups[1]: expected a group that groups declares (premium?), found "premum"',
  ],
  [
    'no groups',
    channel('groups: []'),
    'gateway.yaml:6: channels[0].groups: expected a list of at least one group, found nothing',
  ],
  [
    'a weight below zero',
    channel('weight: -1'),
    'gateway.yaml:6: channels[0].weight: expected a number from 0 to 1000000, found -1',
  ],
  [
    'a priority between numbers',
    channel('priority: 0.5'),
    'gateway.yaml:6: channels[0].priority: expected a whole number from -1000000 to 1000000, found 0.5',
  ],
  [
    'a way of thinking that nobody knows',
    'models:\n  m: { thinking: adaptve }\n',
    'gateway.yaml:2: models.m.thinking: expected one of adaptive, budget, none (adaptive?), found "adaptve"',
  ],
  [
    'sampling that is neither on nor off',
    'models:\n  m: { sampling: top_p }\n',
    'gateway.yaml:2: models.m.sampling: expected true or false, found "top_p"',
  ],
  [
    'a field that no gate holds',
    channel('allow: [service-tier]'),
    'gateway.yaml:6: channels[0].allow[0]: expected one of service_tier, safety_identifier, include_obfuscation, inference_geo, speed, cache_control, metadata, prompt_cache_key, prompt_cache_options, prompt_cache_retention, store, user, verbosity, models, route, provider, plugins, transforms, search_parameters, extra_body, session (service_tier?), found "service-tier"',
  ],
  [
    'a tier of service that the provider lacks',
    channel('service_tier: hyper speed'),
    'gateway.yaml:6: channels[0].service_tier: expected the name of a tier of service, such as flex, priority or auto, found "hyper speed"',
  ],
  [
    'a tier of a batch',
    channel('service_tier: batch'),
    'gateway.yaml:6: channels[0].service_tier: expected a tier of service that the provider has (auto, standard, flex, fast or priority, ultrafast, reserved), found "batch"',
  ],
  [
    'a header that is none',
    channel('headers: { "a b": c }'),
    'gateway.yaml:6: channels[0].headers["a b"]: expected the name of a header',
  ],
  [
    'a header value of two lines',
    channel('headers: { x-a: "b\\r\\nc: d" }'),
    'gateway.yaml:6: channels[0].headers.x-a: expected a header value: printable characters, no line breaks, found something else',
  ],
  [
    'a header of the connection',
    channel('headers: { Content-Length: "1" }'),
    'gateway.yaml:6: channels[0].headers.Content-Length: expected a header that the gateway does not set itself',
  ],
  [
    'a header twice',
    channel('headers: { x-a: "1", X-A: "2" }'),
    'gateway.yaml:6: channels[0].headers.X-A: expected this header once (names are the same in upper and lower case)',
  ],
  [
    'a mapping to nothing',
    channel('model_mapping: { m: }'),
    'gateway.yaml:6: channels[0].model_mapping.m: expected the name of a model (1 to 200 characters, in quotes if it looks like a number), found nothing',
  ],
  [
    'an unknown way to leave',
    channel('on_client_gone: stop'),
    'gateway.yaml:6: channels[0].on_client_gone: expected one of cancel, drain, found "stop"',
  ],
  [
    'an unknown timeout',
    channel('timeouts: { first_bite: 1s }'),
    'gateway.yaml:6: channels[0].timeouts.first_bite: unknown key, expected first_byte',
  ],
  [
    'two channels of one name',
    'channels:\n  - { name: a, protocol: chat, base_url: http://a, models: [m] }\n  - { name: a, protocol: chat, base_url: http://b, models: [m] }\n',
    'gateway.yaml:3: channels[1].name: expected a different name, another entry has the same',
  ],
  [
    'an empty entry',
    'channels:\n  -\n',
    'gateway.yaml:2: channels[0].name: expected a name for the channel (1 to 200 characters, in quotes if it looks like a number), found nothing',
    'gateway.yaml:2: channels[0].protocol: expected one of chat, messages, responses, gemini, converse, rerank, found nothing',
    'gateway.yaml:2: channels[0].base_url: expected an http:// or https:// URL, found nothing',
    'gateway.yaml:2: channels[0].models: expected a list of at least one model, found nothing',
  ],
]

const USERS: Case[] = [
  [
    'a user without a name',
    'users:\n  - id: 1\n',
    'gateway.yaml:2: users[0].username: expected a name for the user (1 to 64 characters, in quotes if it looks like a number), found nothing',
  ],
  [
    'an id of zero',
    'users:\n  - username: a\n    id: 0\n',
    'gateway.yaml:3: users[0].id: expected a whole number from 1 to 9007199254740991, found 0',
  ],
  [
    'an unknown role',
    'users:\n  - username: a\n    role: 2\n',
    'gateway.yaml:3: users[0].role: expected one of 1, 10, 100 (1?), found 2',
  ],
  [
    'an unknown status',
    'users:\n  - username: a\n    status: 3\n',
    'gateway.yaml:3: users[0].status: expected one of 1, 2 (1?), found 3',
  ],
  [
    'a group that nobody declared',
    'users:\n  - username: a\n    group: vip\n',
    'gateway.yaml:3: users[0].group: expected a group that groups declares, found "vip"',
  ],
  [
    'a quota below zero',
    'users:\n  - username: a\n    quota: -5\n',
    'gateway.yaml:3: users[0].quota: expected a whole number from 0 to 500000000000000, found -5',
  ],
  [
    'an access token with a space, without showing it',
    'users:\n  - username: a\n    access_token: "open sesame"\n',
    'gateway.yaml:3: users[0].access_token: expected a token: printable characters without spaces, found something else',
  ],
  [
    'two users of one name',
    'users:\n  - username: a\n  - username: a\n',
    'gateway.yaml:3: users[1].username: expected a different username, another entry has the same',
  ],
  [
    'two users of one id',
    'users:\n  - { id: 7, username: a }\n  - { id: 7, username: b }\n',
    'gateway.yaml:3: users[1].id: expected a different id, another entry has the same',
  ],
  [
    'two users of one access token',
    'users:\n  - { username: a, access_token: "${KEY}" }\n  - { username: b, access_token: super-secret }\n',
    'gateway.yaml:3: users[1].access_token: expected a different access_token, another entry has the same',
  ],
]

const TOKENS: Case[] = [
  [
    'a token without a name',
    'users:\n  - username: u\n    tokens:\n      - unlimited_quota: true\n',
    'gateway.yaml:4: users[0].tokens[0].name: expected a name for the token (1 to 50 characters, none of them invisible, in quotes if it looks like a number), found nothing',
  ],
  [
    'a name of 51 characters',
    token(`name: ${'x'.repeat(51)}`).replace('name: t\n        ', ''),
    `gateway.yaml:5: users[0].tokens[0].name: expected a name for the token (1 to 50 characters, none of them invisible, in quotes if it looks like a number), found "${'x'.repeat(51)}"`,
  ],
  [
    'a key with a hyphen',
    token('key: sk-abc-def'),
    'gateway.yaml:6: users[0].tokens[0].key: expected sk- and then letters and digits only, found something else',
  ],
  [
    'a key with an underscore, from a variable',
    token('key: sk-${KEY}_'),
    'gateway.yaml:6: users[0].tokens[0].key: expected sk- and then letters and digits only, found something else',
  ],
  [
    'a key of nothing but sk-',
    token('key: sk-'),
    'gateway.yaml:6: users[0].tokens[0].key: expected sk- and then letters and digits only, found something else',
  ],
  [
    'a key that is used twice, with sk- and without',
    `${token('key: sk-abc')}\n      - { name: s, unlimited_quota: true, key: abc }`,
    'gateway.yaml:7: users[0].tokens[1].key: expected a different key, another entry has the same',
  ],
  [
    'two tokens of one name',
    `${token('key: sk-abc')}\n      - { name: t, unlimited_quota: true }`,
    'gateway.yaml:7: users[0].tokens[1].name: expected a different name, another entry has the same',
  ],
  [
    'a status that only time can bring',
    token('status: 4'),
    'gateway.yaml:6: users[0].tokens[0].status: expected one of 1, 2 (1?), found 4',
  ],
  [
    'an expiry of zero',
    token('expired_time: 0'),
    'gateway.yaml:6: users[0].tokens[0].expired_time: expected -1 (never) or a time in Unix seconds, found 0',
  ],
  [
    'an expiry below −1',
    token('expired_time: -2'),
    'gateway.yaml:6: users[0].tokens[0].expired_time: expected -1 (never) or a time in Unix seconds, found -2',
  ],
  [
    'an expiry in milliseconds',
    token('expired_time: 1796069363000'),
    'gateway.yaml:6: users[0].tokens[0].expired_time: expected -1 (never) or a time in Unix seconds, found 1796069363000',
  ],
  [
    'an expiry in words',
    token('expired_time: 2026-12-31'),
    'gateway.yaml:6: users[0].tokens[0].expired_time: expected -1 (never) or a time in Unix seconds, found "2026-12-31"',
  ],
  [
    'neither a quota nor none needed',
    'users:\n  - username: u\n    tokens:\n      - name: t\n',
    'gateway.yaml:4: users[0].tokens[0].remain_quota: expected a quota (or unlimited_quota: true), found nothing',
  ],
  [
    'a quota below zero',
    token('remain_quota: -1'),
    'gateway.yaml:6: users[0].tokens[0].remain_quota: expected a whole number from 0 to 500000000000000, found -1',
  ],
  [
    'a quota above a billion units',
    `options: { quota_per_unit: 2 }\n${token('remain_quota: 2000000001')}`,
    'gateway.yaml:7: users[0].tokens[0].remain_quota: expected a whole number from 0 to 2000000000, found 2000000001',
  ],
  [
    'an address that is none',
    token('allow_ips: "10.0.0.1\\n10.0.0.256"'),
    'gateway.yaml:6: users[0].tokens[0].allow_ips: expected addresses and CIDRs, one a line (10.0.0.256 is neither), found "10.0.0.1\\n10.0.0.256"',
  ],
  [
    'a list of model limits',
    token('model_limits: [a]'),
    'gateway.yaml:6: users[0].tokens[0].model_limits: expected model names with commas between them, found a list',
  ],
  [
    'a group that nobody declared',
    token('group: vip'),
    'gateway.yaml:6: users[0].tokens[0].group: expected a group that groups declares, found "vip"',
  ],
  [
    'a closed group of others',
    `groups: { vip: { open: false } }\n${token('group: vip')}`,
    'gateway.yaml:7: users[0].tokens[0].group: expected an open group, or the user\'s own (vip is closed), found "vip"',
  ],
  [
    'routes that are no JSON',
    token("vendor_routes: '{anthropic: vip}'"),
    'gateway.yaml:6: users[0].tokens[0].vendor_routes: expected a JSON map from vendors to groups such as {"anthropic": "vip"}, nothing in it empty, found "{anthropic: vip}"',
  ],
  [
    'routes to an empty group',
    token(`vendor_routes: '{"a": ""}'`),
    'gateway.yaml:6: users[0].tokens[0].vendor_routes: expected a JSON map from vendors to groups such as {"anthropic": "vip"}, nothing in it empty, found "{\\"a\\": \\"\\"}"',
  ],
  [
    'routes to a group that nobody declared',
    token(`vendor_routes: '{"a": "vip"}'`),
    'gateway.yaml:6: users[0].tokens[0].vendor_routes: expected a group that groups declares, found "{\\"a\\": \\"vip\\"}"',
  ],
  [
    'routes that are a mapping',
    token('vendor_routes: { a: default }'),
    'gateway.yaml:6: users[0].tokens[0].vendor_routes: expected a JSON map from vendors to groups, in quotes, found a mapping',
  ],
  [
    'an unknown key',
    token('unlimited: true'),
    'gateway.yaml:6: users[0].tokens[0].unlimited: unknown key, expected one of name, key, status, expired_time, remain_quota, unlimited_quota, model_limits_enabled, model_limits, allow_ips, group, vendor_routes, guards, toolsets, budget, budget_period, rate_limit, content_log',
  ],
]

describe('gateway.yaml is refused for', () => {
  const cases = [
    ...YAML,
    ...VARIABLES,
    ...ALERTS,
    ...OPTIONS,
    ...LIMITS_AND_GROUPS,
    ...MODELS,
    ...CHANNELS,
    ...USERS,
    ...TOKENS,
  ]
  test.each(cases.map(([what, file, ...expected]) => ({ what, file, expected })))(
    'gateway.yaml is refused for $what',
    ({ file, expected }) => {
      expect(said(file)).toEqual(expected)
    },
  )
})

test('all errors in gateway.yaml are reported at once, in whichever sections they are', () => {
  const file = [
    'options: { retries: many }',
    'groups: { vip: { ratio: -1 } }',
    'channels:',
    '  - { name: a, protocol: chat, base_url: nowhere, models: [m], groups: [vip, pro] }',
    '  - { name: a, protocol: chat, base_url: http://b, models: [m], keys: ["${NOT_SET}"] }',
    'users: [{ username: u, tokens: [{ name: t }] }]',
  ].join('\n')
  expect(said(file).map((line) => line.split(': expected')[0])).toEqual([
    'gateway.yaml:5: channels[1].keys[0]',
    'gateway.yaml:1: options.retries',
    'gateway.yaml:2: groups.vip.ratio',
    'gateway.yaml:4: channels[0].base_url',
    'gateway.yaml:4: channels[0].groups[1]',
    'gateway.yaml:6: users[0].tokens[0].remain_quota',
    'gateway.yaml:5: channels[1].name',
  ])
})

test('a gateway.yaml whose nested aliases multiply to more than 100,000 values is refused', () => {
  const lines = Array.from({ length: 12 }, (_, level) => {
    const item = level === 0 ? 'x' : `*a${level - 1}`
    return `a${level}: &a${level} [${Array.from({ length: 10 }, () => item).join(', ')}]`
  })
  expect(
    said(lines.join('\n')).some((line) => line.endsWith('expected at most 100000 values in aliases')),
  ).toBe(true)
})

test('no refusal shows the value of a variable', () => {
  const shown = 'the-value-that-may-be-secret'
  variables.set('SECRET', `${shown}\u200b(`)
  variables.set('PLACE', shown)
  variables.set('WORD', 'secretplace')
  const file = (...lines: string[]): string[] => said(lines.join('\n'))
  const lines = [
    ...file(
      'options:',
      '  { display: "${SECRET}", body_limit: "${SECRET}", trusted_proxies: ["${SECRET}"], metrics_token: "${SECRET} ",',
      '    admin_listen: "${SECRET}", base_path: "${SECRET}", public_url: "${SECRET}", cors: { origins: ["${SECRET}"] } }',
      'groups: { g: { guards: ["${SECRET}"], budget_period: "${SECRET}" } }',
      'models: { m: { fallback: ["${SECRET}"], price: { input: "${SECRET}", output: 1 } } }',
      'channels:',
      '  - { name: "${SECRET}", protocol: "${SECRET}", base_url: "${SECRET}", keys: ["${SECRET}"], models: ["${SECRET}"],',
      '      groups: ["${SECRET}"], service_tier: "${SECRET}" }',
      'users:',
      '  - { username: "${SECRET}", group: "${SECRET}", tokens: [{ name: "${SECRET}", key: "${SECRET}", allow_ips: "${SECRET}",',
      '      vendor_routes: "${SECRET}", guards: ["${SECRET}"], toolsets: ["${SECRET}"] }] }',
      'alerts: [{ url: "${SECRET}", events: ["${SECRET}"] }]',
      'guards:',
      '  - { name: "${SECRET}!", do: "${SECRET}", match: { regex: "${SECRET}" }, models: ["${SECRET}"] }',
      'content_log: { store: "${SECRET}", sample: "${SECRET}" }',
    ),
    ...file('guards: [{ name: g, do: block, match: { regex: ["${PLACE}"], most: 1 } }]'),
    ...[
      'provider: bedrock, protocol: converse, region: "${PLACE}-1"',
      'provider: vertex, protocol: gemini, project: p, location: "${WORD}"',
      'provider: bedrock, protocol: converse, region: eu-west-1, service_tier: "${PLACE}"',
    ].flatMap((fields) => file(`channels: [{ name: a, keys: ["{}"], models: [m], ${fields} }]`)),
  ]
  expect(lines.length).toBeGreaterThan(25)
  expect(lines.filter((line) => line.includes(shown) || line.includes('secretplace'))).toEqual([])
})
