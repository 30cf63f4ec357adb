import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { DemoUrls } from '../../src/cli/demo-config.ts'
import { Passwords } from '../../src/accounts/authentication/passwords.ts'
import { readConfig } from '../../src/config/config.ts'
import { readEnvironment } from '../../src/config/environment.ts'
import type { ChangeOrigin } from '../../src/domain/audit.ts'
import {
  type Budget,
  type BudgetOwner,
  type BudgetPeriod,
  budgetInPeriodAt,
  formatBudgetList,
} from '../../src/domain/budget.ts'
import { callExtraFactsText } from '../../src/domain/call-detail.ts'
import { cacheSavings, chargeOfCall } from '../../src/domain/charge.ts'
import { priceSetText, type ChargeRate, chargeRateOf } from '../../src/domain/price.ts'
import { TOKEN } from '../../src/domain/records/token.ts'
import { serviceRate } from '../../src/domain/service-rate.ts'
import type { Settings } from '../../src/domain/settings.ts'
import type { Secrets } from '../../src/store/secrets.ts'
import { openSqliteStore } from '../../src/store/sqlite/open.ts'
import type { Store } from '../../src/store/store.ts'
import { channelDefinition } from '../../src/management/channels/channel-definition.ts'
import { channelFields } from '../../src/management/channels/channel-fields.ts'
import { randomFrom } from '../../test/fixtures/random.ts'
import { callId, type MadeKey, modelsOf, pick, planCall, type Random, startTimes } from './world-calls.ts'
import { CHANNELS, MODELS, PASSWORDS, USERS, WORLD_YAML } from './world-catalogue.ts'
import { planSessions, type Turn } from './world-sessions.ts'
import { addRefusedCalls } from './world-refusals.ts'

const DAY_MS = 86_400_000
/** Quota units of a dollar. */
const DOLLAR = 500_000
/** Settlements that wait for the database at a time. */
const AT_ONCE = 4_000
/** The share of the calls that belong to sessions of agents. */
const SESSION_SHARE = 0.3
/** A new user's quota; some of it is spent by the calls. */
const QUOTA = 5_000 * DOLLAR

/** What is made. */
export interface WorldOptions {
  readonly dataDir: string
  readonly secrets: Secrets
  /** The simulated upstreams behind the channels. */
  readonly upstreams: DemoUrls
  readonly calls?: number
  /** The same seed and time make the same world. */
  readonly seed?: number
  readonly nowMs?: number
  /** Access token of root, and its key without `sk-`. */
  readonly root: { readonly accessToken: string; readonly key: string }
}

/**
 * Fills the data folder of a stopped gateway with an organisation as an operator meets it after three months:
 * ten channels of which one fails, fifteen users, budgets, and a hundred thousand calls, some of them in sessions. Everything is written by
 * the operations of the store, so that rows, sums, balances and audit log agree. `world-catalogue.ts` has
 * its content. Writes `world.yaml` into the folder, and returns its path.
 */
export async function makeWorld(options: WorldOptions): Promise<string> {
  const { dataDir, secrets, upstreams, calls = 100_000, seed = 1, nowMs = Date.now() } = options
  const config = join(dataDir, 'world.yaml')
  writeFileSync(config, WORLD_YAML, { mode: 0o600 })
  const { settings } = readConfig(readEnvironment({ DATA_DIR: dataDir }, { config }))
  const random = randomFrom(seed)
  const store = await openSqliteStore({ path: join(dataDir, 'sluice.db'), secrets })
  try {
    const world = new World(store, settings, nowMs)
    await world.makeUsers(options.root)
    await world.makeChannels(upstreams)
    const keys = await world.makeKeys(options.root, random)
    await world.settleCalls(keys, calls, random)
    await addRefusedCalls(store, { keys, nowMs, random, calls: Math.round(calls / 60) })
    await world.makeChanges(keys, random)
  } finally {
    await store.close()
  }
  return config
}

class World {
  readonly #store: Store
  readonly #settings: Settings
  readonly #nowMs: number
  readonly #rates = new Map<string, ChargeRate>()
  /** What the calls of its present period have spent, by the name of a budget's account. */
  readonly #spent = new Map<string, number>()

  constructor(store: Store, settings: Settings, nowMs: number) {
    this.#store = store
    this.#settings = settings
    this.#nowMs = nowMs
  }

  #origin(daysAgo: number, actor = 'root', via: ChangeOrigin['via'] = 'console'): ChangeOrigin {
    const actorId = USERS.findIndex(({ username }) => username === actor) + 1
    return { actorId, actor, via, address: '10.20.4.17', atMs: Math.round(this.#nowMs - daysAgo * DAY_MS) }
  }

  async makeUsers(root: WorldOptions['root']): Promise<void> {
    const passwords = new Passwords()
    for (const [index, { username, display, role, group }] of USERS.entries()) {
      const origin = this.#origin(99 - index * 0.1)
      const password = PASSWORDS[username]
      await this.#store.write('createUser', {
        username,
        display_name: display,
        role,
        status: 1,
        group,
        quota: QUOTA,
        created_time: Math.floor(origin.atMs / 1000),
        accessToken: username === 'root' ? root.accessToken : null,
        ...(password !== undefined && { passwordHash: await passwords.hash(password, username) }),
        ...(username !== 'root' && { origin }),
      })
    }
  }

  async makeChannels(upstreams: DemoUrls): Promise<void> {
    for (const [index, { name, protocol, url, priority }] of CHANNELS.entries()) {
      const models = MODELS.filter(({ channels }) => channels.includes(name))
      const origin = this.#origin(97.5 - index * 0.1)
      const fields = channelFields.parse({
        name,
        type: 0,
        protocol,
        base_url: url === 'nobody' ? 'http://127.0.0.1:9/v1' : upstreams[url],
        models: models.map((one) => one.name).join(','),
        group: 'default,research,sales',
        priority,
        model_mapping: JSON.stringify(Object.fromEntries(models.map((one) => [one.name, one.as]))),
        settings: JSON.stringify({ allow_service_tier: models.some(({ tiers }) => tiers) }),
      })
      const keys = name.startsWith('openai') ? ['simulated-key-1', 'simulated-key-2'] : ['simulated-key']
      await this.#store.write('createChannels', {
        channels: [channelDefinition(fields, keys)],
        created_time: Math.floor(origin.atMs / 1000),
        origin,
      })
    }
  }

  async makeKeys(root: WorldOptions['root'], random: Random): Promise<readonly MadeKey[]> {
    const made: MadeKey[] = []
    const all = USERS.flatMap((user, index) => user.keys.map((key) => ({ user, userId: index + 1, key })))
    for (const [at, { user, userId, key }] of all.entries()) {
      const origin = this.#origin(96 - at * 0.1, user.username)
      const { id } = await this.#store.write('createUserToken', {
        maxTokens: 1000,
        token: {
          ...TOKEN.defaults,
          user_id: userId,
          name: key.name,
          key: key.name === 'first' ? root.key : randomKey(random),
          status: 1,
          created_time: Math.floor(origin.atMs / 1000),
          expired_time: key.state === 'expired' ? Math.floor(this.#nowMs / 1000) - 9 * 86_400 : -1,
          remain_quota: 0,
          unlimited_quota: true,
          model_limits_enabled: key.models !== undefined,
          model_limits: key.models?.join(',') ?? '',
        },
        origin,
      })
      made.push({ id, user, userId, key, weight: key.weight })
    }
    return made
  }

  async settleCalls(keys: readonly MadeKey[], calls: number, random: Random): Promise<void> {
    const endMs = this.#nowMs - 1_000
    const callable = keys.filter(({ key }) => key.state === undefined)
    const ofSessions = Math.round(calls * SESSION_SHARE)
    const times = startTimes(calls - ofSessions, endMs, random)
    const startOf = (): number => times[Math.floor(random() * times.length)] ?? endMs
    const turns = planSessions(callable, ofSessions, { startOf, nowMs: endMs, random })
    const due = [...times.map((startedMs) => ({ startedMs })), ...turns]
    let waiting: Promise<unknown>[] = []
    for (const call of due.toSorted((one, other) => one.startedMs - other.startedMs)) {
      waiting.push(
        this.#settle('planned' in call ? call : this.#planned(call.startedMs, callable, random), random),
      )
      if (waiting.length < AT_ONCE) continue
      await Promise.all(waiting)
      waiting = []
    }
    await Promise.all(waiting)
  }

  #planned(startedMs: number, callable: readonly MadeKey[], random: Random): Turn {
    const made = pick(callable, random)
    const model = pick(modelsOf(made.key.models), random)
    return { startedMs, made, model, planned: planCall(model, startedMs, this.#nowMs, random) }
  }

  async #settle({ startedMs, made, model, planned: call }: Turn, random: Random): Promise<void> {
    const { tier, ...planned } = call
    const { group } = made.user
    const rate = this.#rateOf(model.name, group)
    const served = tier
      ? serviceRate(rate, { provider: 'generic', base_url: '', region: null, location: null }, model.name, {
          tier,
        })
      : undefined
    const quota = planned.delivered ? chargeOfCall(served?.rate ?? rate, planned.usage) : 0
    const budgets = [...budgetsOf(made)].map(([owner, period]) =>
      budgetInPeriodAt({ amount: 1, period }, owner, startedMs),
    )
    for (const { name, resetsMs } of budgets)
      if (resetsMs > this.#nowMs) this.#spent.set(name, (this.#spent.get(name) ?? 0) + quota)
    await this.#store.write('settle', {
      ...planned,
      ...(planned.delivered && cacheSavings(served?.rate ?? rate, planned.usage)),
      id: callId(startedMs, random),
      ended_ms: startedMs + planned.duration_ms,
      user_id: made.userId,
      token_id: made.id,
      model: model.name,
      requested_model: model.name,
      upstream_model: model.as,
      group,
      quota,
      service_tier: tier,
      requested_service_tier: tier === 'standard' ? '' : tier,
      kind: model.kind,
      price_version: this.#settings.priceVersion,
      budgets: formatBudgetList(budgets.map(({ name }) => name)),
      particulars: callExtraFactsText(
        planned.usage,
        { form: undefined, tools: [], served: served?.terms },
        {
          queuedMs: Math.floor(random() * 3),
          connectMs: random() < 0.1 ? 20 + Math.floor(random() * 60) : 0,
        },
        [],
      ),
    })
  }

  /** The price of a model in a group, which is stored when it is first used. */
  #rateOf(model: string, group: string): ChargeRate {
    const known = this.#rates.get(`${group} ${model}`)
    if (known) return known
    const { models, groups, options, priceVersion } = this.#settings
    const { price } = models.get(model)
    const ratio = groups.get(group)?.ratio
    if (!price || !ratio) throw new Error(`the world has no price for ${model} in ${group}`)
    const rate = chargeRateOf(price, ratio, options.quota_per_unit)
    this.#rates.set(`${group} ${model}`, rate)
    const content = priceSetText({ price, ratio, quotaPerUnit: options.quota_per_unit })
    void this.#store.write('storePriceSet', { version: priceVersion, model, group, content })
    return rate
  }

  /** Makes what people change in three months, in the order of time. */
  async makeChanges(keys: readonly MadeKey[], random: Random): Promise<void> {
    const changes = [...this.#limits(keys), ...this.#dailyWork(keys, random)]
    for (const { origin, run } of changes.toSorted((one, other) => one.origin.atMs - other.origin.atMs))
      await run(origin)
  }

  /** Sets the budgets, so that their stated part is used, and disables what is disabled. */
  *#limits(keys: readonly MadeKey[]): Iterable<Change> {
    const nowMs = this.#nowMs
    for (const { id, key, user, userId } of keys) {
      const { budget } = key
      if (budget)
        yield {
          origin: this.#origin(60, 'bea'),
          run: async (origin) => {
            const fields = await this.#openBudget(`t:${id}`, budget)
            const change = { tokenId: id, userId, isByOperator: true, maxQuota: QUOTA * 10, nowMs }
            await this.#store.write('changeToken', { ...change, fields, origin })
          },
        }
      if (key.state === 'disabled')
        yield {
          origin: this.#origin(12, user.username),
          run: (origin) =>
            this.#store.write('enableOrDisableToken', { tokenId: id, userId, status: 2, nowMs, origin }),
        }
    }
    for (const [index, { budget, state }] of USERS.entries()) {
      const userId = index + 1
      if (budget)
        yield {
          origin: this.#origin(58, 'bea'),
          run: async (origin) => {
            const fields = { limits: await this.#openBudget(`u:${userId}`, budget) }
            await this.#store.write('changeUser', { userId, fields, origin })
          },
        }
      if (state === 'disabled')
        yield {
          origin: this.#origin(20, 'bea'),
          run: (origin) => this.#store.write('changeUser', { userId, fields: { status: 2 }, origin }),
        }
      if (state === 'poor') {
        const quota = { mode: 'override', value: 0.4 * DOLLAR, maxQuota: QUOTA * 10 } as const
        yield {
          origin: this.#origin(2, 'bea'),
          run: (origin) => this.#store.write('changeUser', { userId, quota, origin }),
        }
      }
    }
  }

  async #openBudget(
    owner: BudgetOwner,
    { period, used }: { readonly period: BudgetPeriod; readonly used: number },
  ): Promise<{ readonly budget: Budget }> {
    const spent = this.#spent.get(budgetInPeriodAt({ amount: 1, period }, owner, this.#nowMs).name) ?? 0
    // In whole dollars, as people set them; one that is used up is at most what was spent.
    const dollars = spent / used / DOLLAR
    const budget = {
      amount: Math.max(1, used < 1 ? Math.ceil(dollars) : Math.floor(dollars)) * DOLLAR,
      period,
    }
    const { name } = budgetInPeriodAt(budget, owner, this.#nowMs)
    await this.#store.write('openBudget', { name, amount: budget.amount })
    return { budget }
  }

  *#dailyWork(keys: readonly MadeKey[], random: Random): Iterable<Change> {
    for (let day = 88; day > 0; day -= 2) {
      const { id, userId, user } = pick(keys, random)
      const at = day - random()
      if (day % 3 === 0)
        yield {
          origin: this.#origin(at, user.username),
          run: (origin) => this.#store.write('recordReveal', { kind: 'key', ids: [id], userId, origin }),
        }
      else if (day % 5 === 0)
        yield {
          origin: { ...this.#origin(at, user.username), address: '203.0.113.60' },
          run: (origin) => this.#store.write('recordRefusedSignIn', { username: user.username, origin }),
        }
      else {
        const value = (5 + 5 * Math.floor(random() * 9)) * DOLLAR
        const quota = { mode: 'add', value, maxQuota: QUOTA * 10 } as const
        yield {
          origin: this.#origin(at, 'bea', random() < 0.2 ? 'api' : 'console'),
          run: (origin) => this.#store.write('changeUser', { userId, quota, origin }),
        }
      }
    }
  }
}

/** A change of the world, and who makes it when. */
interface Change {
  readonly origin: ChangeOrigin
  readonly run: (origin: ChangeOrigin) => Promise<unknown>
}

/** Who has a budget that the calls of a key count against. */
function* budgetsOf({ id, key, user, userId }: MadeKey): Iterable<[BudgetOwner, BudgetPeriod]> {
  if (key.budget) yield [`t:${id}`, key.budget.period]
  if (user.budget) yield [`u:${userId}`, user.budget.period]
  if (user.group === 'sales') yield ['g:sales', 'month']
}

const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

function randomKey(random: Random): string {
  return Array.from({ length: 48 }, () => LETTERS[Math.floor(random() * LETTERS.length)]).join('')
}
