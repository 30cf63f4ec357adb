/** What the world of `world.ts` has: channels, users, keys, and what each of them likes to call. */
import type { DemoUrls } from '../../src/cli/demo-config.ts'
import type { BudgetPeriod } from '../../src/domain/budget.ts'

/** A model, and how its calls are on average. */
export interface WorldModel {
  readonly name: string
  /** The model of the simulated upstream that answers for it. */
  readonly as: string
  /** Channels that serve it, the first one mostly. */
  readonly channels: readonly [string, ...string[]]
  readonly kind: 'chat' | 'messages' | 'responses' | 'gemini' | 'embeddings'
  /** Tokens of a typical call. */
  readonly prompt: number
  readonly output: number
  /** Share of the prompt that is read from the cache. */
  readonly cached: number
  readonly reasoning: number
  /** Milliseconds to the first byte, and per 100 tokens of output. */
  readonly firstMs: number
  readonly tokenMs: number
  /** How often it is called. */
  readonly weight: number
  readonly tiers?: readonly string[]
}

const model = (
  name: string,
  as: string,
  channels: WorldModel['channels'],
  kind: WorldModel['kind'],
  [prompt, output, cached, reasoning]: readonly [number, number, number, number],
  [firstMs, tokenMs, weight]: readonly [number, number, number],
  tiers?: readonly string[],
): WorldModel => ({
  name,
  as,
  channels,
  kind,
  prompt,
  output,
  cached,
  reasoning,
  firstMs,
  tokenMs,
  weight,
  ...(tiers && { tiers }),
})

/** The models; tiers of service are those of their prices in `worldYaml`. */
export const MODELS: readonly WorldModel[] = [
  model(
    'gpt-5.1',
    'demo-responses',
    ['openai-main', 'openai-backup'],
    'responses',
    [6200, 900, 0.4, 0.35],
    [900, 1300, 14],
    ['fast', 'flex'],
  ),
  model(
    'gpt-5-mini',
    'demo-chat',
    ['openai-chat', 'azure-sweden'],
    'chat',
    [1800, 380, 0.2, 0.2],
    [520, 800, 24],
  ),
  model(
    'gpt-4o-mini',
    'demo-chat',
    ['openai-chat', 'azure-sweden'],
    'chat',
    [900, 210, 0.1, 0],
    [380, 700, 16],
  ),
  model(
    'claude-sonnet-4-5',
    'demo-claude',
    ['anthropic-main', 'anthropic-backup-in-the-second-organisation'],
    'messages',
    [18_000, 850, 0.75, 0.1],
    [1100, 1500, 18],
    ['batch'],
  ),
  model(
    'claude-opus-4-5',
    'demo-claude',
    ['anthropic-main'],
    'messages',
    [24_000, 1400, 0.8, 0.2],
    [1900, 2100, 4],
  ),
  model(
    'claude-haiku-4-5',
    'demo-claude',
    ['anthropic-main'],
    'messages',
    [2400, 260, 0.3, 0],
    [430, 600, 9],
  ),
  model(
    'gemini-2.5-pro',
    'demo-gemini',
    ['gemini-main'],
    'gemini',
    [38_000, 1200, 0.35, 0.3],
    [1500, 1100, 5],
  ),
  model('gemini-2.5-flash', 'demo-gemini', ['gemini-main'], 'gemini', [3100, 420, 0.1, 0], [410, 500, 12]),
  model('mistral-large-latest', 'demo-chat', ['mistral-paris'], 'chat', [1500, 420, 0, 0], [650, 900, 3]),
  model('deepseek-chat', 'demo-chat', ['deepseek'], 'chat', [2600, 640, 0.5, 0], [1300, 1600, 5]),
  model('text-embedding-3-small', 'demo-embed', ['embeddings'], 'embeddings', [620, 0, 0, 0], [0, 0, 13]),
]

/** A channel of the world; its upstream is simulated, or nobody listens there. */
export interface WorldChannel {
  readonly name: string
  readonly protocol: string
  readonly url: keyof DemoUrls | 'nobody'
  readonly priority: number
}

const channel = (name: string, protocol: string, url: WorldChannel['url'], priority = 0): WorldChannel => ({
  name,
  protocol,
  url,
  priority,
})

/** The channels; nothing listens at the address of the failing one. */
export const FAILING_CHANNEL = 'mistral-paris'
export const CHANNELS: readonly WorldChannel[] = [
  channel('openai-main', 'responses', 'responsesUrl', 10),
  channel('openai-backup', 'responses', 'responsesUrl'),
  channel('openai-chat', 'chat', 'chatUrl', 10),
  channel('azure-sweden', 'chat', 'chatUrl'),
  channel('anthropic-main', 'messages', 'messagesUrl', 10),
  channel('anthropic-backup-in-the-second-organisation', 'messages', 'messagesUrl'),
  channel('gemini-main', 'gemini', 'geminiUrl'),
  channel(FAILING_CHANNEL, 'chat', 'nobody'),
  channel('deepseek', 'chat', 'chatUrl'),
  channel('embeddings', 'chat', 'embeddingsUrl'),
]

/** A key of the world. `used` is the part of its budget that its calls of this period have spent. */
export interface WorldKey {
  readonly name: string
  readonly weight: number
  readonly models?: readonly string[]
  readonly budget?: { readonly period: BudgetPeriod; readonly used: number }
  readonly state?: 'disabled' | 'expired'
}

/** A user of the world. */
export interface WorldUser {
  readonly username: string
  readonly display: string
  readonly role: 1 | 10 | 100
  readonly group: string
  readonly keys: readonly WorldKey[]
  readonly budget?: { readonly period: BudgetPeriod; readonly used: number }
  readonly state?: 'disabled' | 'poor'
}

const key = (name: string, weight: number, more: Omit<WorldKey, 'name' | 'weight'> = {}): WorldKey => ({
  name,
  weight,
  ...more,
})

const member = (
  username: string,
  display: string,
  group: string,
  keys: readonly WorldKey[],
  more: Pick<WorldUser, 'budget' | 'state'> = {},
): WorldUser => ({ username, display, role: 1, group, keys, ...more })

const CHEAP = ['gpt-5-mini', 'gpt-4o-mini', 'gemini-2.5-flash', 'claude-haiku-4-5', 'text-embedding-3-small']
const AGENTS = ['claude-sonnet-4-5', 'claude-opus-4-5', 'gpt-5.1']

/** The users; the first three are those that the tests of the console sign in as. */
export const USERS: readonly WorldUser[] = [
  { username: 'root', display: 'Root', role: 100, group: 'default', keys: [key('first', 2)] },
  {
    username: 'bea',
    display: 'Bea Brandt',
    role: 10,
    group: 'default',
    keys: [key('notebook', 5), key('evaluation', 4)],
  },
  member(
    'ann',
    'Ann Archer',
    'default',
    [
      key('Key of 2 Sep', 9, { models: AGENTS, budget: { period: 'month', used: 0.72 } }),
      key('notebook', 3),
      key('old laptop', 1, { state: 'expired' }),
    ],
    { budget: { period: 'month', used: 0.55 } },
  ),
  member('cal', 'Cal Castillo', 'research', [
    key('claude-code', 16, { models: AGENTS }),
    key('slack-bot', 6),
  ]),
  member('dora.delacroix', 'Dora Delacroix', 'research', [key('notebook', 7), key('paper summaries', 5)]),
  member('emil', 'Emil Eriksen', 'sales', [key('crm enrichment', 18, { models: CHEAP })]),
  member('fatima', 'Fatima Farouk', 'sales', [
    key('call notes', 8, { models: CHEAP, budget: { period: 'day', used: 1 } }),
    key('notebook', 2),
  ]),
  member('gustav', 'Gustav Grön', 'default', [key('codex', 9, { models: AGENTS })], {
    budget: { period: 'week', used: 0.93 },
  }),
  member('hanna', 'Hanna Hoffmann', 'default', [key('support-assistant-production-eu-central', 26)]),
  member('igor', 'Igor Ivanov', 'default', [key('nightly batch', 14, { models: CHEAP })]),
  member('jun.li', '李军', 'research', [key('翻译', 6), key('notebook', 2)]),
  member('kofi', 'Kofi Kuffour', 'sales', [key('my-key', 3)], { state: 'poor' }),
  member('lena', 'Lena Lindqvist', 'default', [key('my-key', 2), key('test', 1, { state: 'disabled' })]),
  member('marco', 'Marco Moretti', 'default', [
    key('search index', 12, { models: ['text-embedding-3-small'] }),
  ]),
  member('nora', 'Nora Nilsen', 'default', [key('my-key', 1)], { state: 'disabled' }),
]

/** Passwords of the users that the tests sign in as; nobody else has one. */
export const PASSWORDS: Readonly<Record<string, string>> = {
  root: 'root password',
  bea: 'admin password',
  ann: 'member password',
}

/** gateway.yaml of the world: groups, prices with tiers of service, and options. */
export const WORLD_YAML = `
options: { usage_log_days: 120, model_dates: false }
groups:
  default: { ratio: 1 }
  research: { ratio: 0.8, open: false }
  sales: { ratio: 1.1, budget: 400000000, budget_period: month }
models:
  gpt-5.1:
    vendor: openai
    price: { input: 1.25, output: 10, cache_read: 0.125, service: { fast: 2, flex: 0.5 } }
  claude-sonnet-4-5:
    vendor: anthropic
    price:
      input: 3
      output: 15
      cache_read: 0.3
      cache_write_5m: 3.75
      service: { batch: 0.5 }
      tiers: [ { above: 200000, input: 6, output: 22.5, cache_read: 0.6 } ]
guards:
  - { name: customers, do: replace, match: { pii: [ email, phone, credit_card, iban ] } }
  - { name: secrets, do: block, where: [ input, tool_results, tool_arguments ], match: { secrets: true }, groups: [ default, research ] }
  - { name: a-codename-that-nobody-outside-of-the-company-should-ever-read, mode: monitor, do: redact, match: { words: [ project yonder ] } }
rate_limits:
  critical: { requests: 1000, window: 60s }
  console: { requests: 6000, window: 60s }
`
