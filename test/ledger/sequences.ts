import { setTimeout as delay } from 'node:timers/promises'
import { findChargedBalances } from '../../src/accounts/ledger/find-charged-balances.ts'
import type { OpenHold } from '../../src/accounts/ledger/open-hold.ts'
import { GatewayError } from '../../src/errors.ts'
import type { TokenChange } from '../../src/store/operations/tokens.ts'
import { StoreUnavailable } from '../../src/store/store-unavailable.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { LedgerProcess, LedgersOfBank } from './banks.ts'
import { accountOf, factsOf, settlementOf } from './calls.ts'
import { accountAt, LedgerModel, type ModelBudget } from './model.ts'
import { newToken, newUser } from '../stores/rows.ts'

/** Processes of each run; one that has the database to itself takes the calls of all. */
const PROCESSES = 3

type Command =
  | ({ readonly do: 'hold' } & HoldCommand)
  | { readonly do: 'extend' | 'mark'; readonly nth: number; readonly by: number }
  | { readonly do: 'settle'; readonly nth: number; readonly by: number; readonly isOther: boolean }
  | { readonly do: 'void' | 'show' | 'park'; readonly nth: number }
  | { readonly do: 'grant'; readonly by: number }
  | { readonly do: 'set'; readonly remain: number; readonly call: HoldCommand }
  | { readonly do: 'limit'; readonly isUnlimited: boolean; readonly call: HoldCommand }
  | { readonly do: 'delete'; readonly token: 0 | 1 }
  /** Sets a budget; to this much above what is used and held, if `isTight`. */
  | {
      readonly do: 'budget'
      readonly of: BudgetOf
      readonly amount: number
      readonly isTight: boolean
      readonly call: HoldCommand
    }

interface HoldCommand {
  readonly process: number
  readonly token: 0 | 1
  /** An amount, all that is free, or one unit more. */
  readonly amount: number | 'all' | 'more'
  /** Start of the call. */
  readonly time: number
  /** Groups whose channels may answer. */
  readonly groups: readonly (0 | 1)[]
}

type BudgetOf = 'token 0' | 'token 1' | 'user' | 'group 0' | 'group 1'

/** The result of the sequences. */
export interface SequencesReport {
  readonly sequences: number
  readonly commands: number
  readonly holds: number
  readonly refusals: number
  /** Refusals and admissions that only a budget decided. */
  readonly ofBudgets: number
  readonly crashes: number
  /** Holds that a crash found on the disk, and those that it did not find there. */
  readonly written: number
  readonly unwritten: number
  /** Growths that were granted after they had been refused. */
  readonly grown: number
  /** Parked holds that a crash left open. */
  readonly parked: number
  /** The shortest sequence that violated the model, if any, and the place. */
  readonly violation: string | undefined
}

const MAX_COMMANDS = 60
const MAX_QUOTA = 1_000_000
const [TOKEN_QUOTA, USER_QUOTA] = [1000, 1500]
const PERIODS = { token: 'day', user: 'week', group: 'month' } as const

const DAY_MS = 86_400_000
/** A Tuesday, the first day of a month. */
const BOUNDARY = Date.parse('2026-12-01T00:00:00Z')
/** Starts of calls, around the ends of a day, a week and a month. */
const TIMES = [-8 * DAY_MS, -1, 0, 6 * DAY_MS - 1, 6 * DAY_MS].map((ms) => BOUNDARY + ms)

/**
 * Time in which a process gets what others have borrowed and do not need; a busy machine may be slow. A
 * refusal within it is no violation yet.
 */
const PATIENCE_MS = 60_000

/**
 * Runs sequences of commands against the ledgers of a bank, many at a time on separate accounts, and compares
 * each result and the final state, in memory and in the database, with a model. The same seed gives the same
 * commands.
 */
export async function runSequences(
  open: (count: number) => Promise<LedgersOfBank<LedgerProcess>>,
  seed: number,
  { count, atOnce }: { readonly count: number; readonly atOnce: number },
): Promise<SequencesReport> {
  const random = randomFrom(seed)
  const bench = await open(PROCESSES)
  const slots = Array.from({ length: Math.min(atOnce, count) }, (_, index) => new Slot(bench, index))
  const compareAll = async (when: string): Promise<void> => {
    await Promise.all(slots.map((slot) => slot.settled()))
    // Writes are committed in order: after an empty write, all are in the file, except holds that were
    // written meanwhile.
    do await Promise.all(bench.nodes.map(({ ledger }) => ledger.probe()))
    while (slots.some((slot) => slot.isBeingWritten))
    for (const endMs = performance.now() + PATIENCE_MS; ; await delay(50)) {
      await Promise.all(bench.nodes.map(({ bankClient }) => inTime(async () => bankClient?.flush())))
      const balances = await balancesIn(bench)
      const found = await Promise.all(slots.map((slot) => slot.differences(balances)))
      // A report leaves out the accounts that a loan of another process has locked at that moment.
      const isWaiting = bench.nodes.some(({ bankClient }) => bankClient) && performance.now() < endMs
      if (isWaiting && found.some((differences) => differences.length > 0)) continue
      for (const [index, differences] of found.entries()) slots[index]?.report(when, differences)
      return
    }
  }
  let violation: string | undefined
  let sequences = 0
  let crashes = 0
  while (sequences < count && violation === undefined) {
    // One after the other, because users are created under one lock, for which a slow machine would wait too long.
    for (const slot of slots) await slot.begin(sequenceOf(random))
    // One crash that meets each sequence at another place, and one at the end, after which nothing is held.
    const middle = slots.map(() => Math.floor(random() * MAX_COMMANDS))
    for (const places of [middle, slots.map(() => MAX_COMMANDS)]) {
      await Promise.all(slots.map((slot, index) => slot.runUntil(places[index] as number)))
      await compareAll('before a crash')
      await bench.crash()
      crashes += 1
      for (const slot of slots) slot.crashed()
      // Calls of a process that has its database to itself begin after the parked holds are resumed.
      if (bench.nodes.some(({ bankClient }) => bankClient))
        await Promise.all(slots.map((slot) => slot.changeBeforeResumption(random)))
      const resumed = await Promise.all(bench.nodes.map(({ ledger }) => ledger.resumeParkedHolds(unowned)))
      const holds = new Map(resumed.flat().map((hold) => [hold.id, hold]))
      for (const slot of slots) slot.resumed(holds)
      await compareAll('after a crash')
    }
    await Promise.all(slots.map((slot) => slot.end(random)))
    await compareAll('at the end')
    sequences += slots.length
    violation = slots
      .flatMap((slot) => slot.violation ?? [])
      .toSorted((a, b) => a.length - b.length)
      .at(0)
  }
  const { tokens, users, days } = await bench.store.read('findUnbalancedAccounts')
  if (tokens.length + users.length + days.length > 0) violation ??= 'what was charged is not what was counted'
  const sum = (of: (slot: Slot) => number): number => slots.reduce((total, slot) => total + of(slot), 0)
  return {
    sequences,
    commands: sum(({ commands }) => commands),
    holds: sum(({ holds }) => holds),
    refusals: sum(({ refusals }) => refusals),
    ofBudgets: sum(({ ofBudgets }) => ofBudgets),
    crashes,
    written: sum(({ written }) => written),
    unwritten: sum(({ unwritten }) => unwritten),
    grown: sum(({ grown }) => grown),
    parked: sum(({ parked }) => parked),
    violation,
  }
}

function unowned(id: string): void {
  throw new Error(`the token of ${id} is gone`)
}

/** Repeats a report that a busy machine has not finished within the second that clients wait for it. */
async function inTime(report: () => Promise<void>): Promise<void> {
  let startMs: number
  do {
    startMs = performance.now()
    await report()
  } while (performance.now() - startMs >= 1_000)
}

function sequenceOf(random: () => number): Command[] {
  const upTo = (max: number): number => Math.floor(random() * (max + 1))
  const token = (): 0 | 1 => (random() < 0.5 ? 0 : 1)
  const length = upTo(MAX_COMMANDS)
  return Array.from({ length }, (): Command => {
    const dice = random()
    if (dice < 0.34) return { do: 'hold', ...holdOf(random) }
    if (dice < 0.39) return { do: 'show', nth: upTo(9) }
    if (dice < 0.57) return { do: 'settle', nth: upTo(9), by: upTo(500), isOther: random() < 0.5 }
    if (dice < 0.63) return { do: 'void', nth: upTo(9) }
    if (dice < 0.73) return { do: 'extend', nth: upTo(9), by: 1 + upTo(300) }
    if (dice < 0.79) return { do: 'mark', nth: upTo(9), by: upTo(300) }
    if (dice < 0.85) return { do: 'park', nth: upTo(9) }
    if (dice < 0.89) return { do: 'grant', by: upTo(800) }
    if (dice < 0.92) return { do: 'set', remain: upTo(TOKEN_QUOTA), call: holdOf(random) }
    if (dice < 0.94) return { do: 'limit', isUnlimited: random() < 0.5, call: holdOf(random) }
    if (dice < 0.995) {
      const of = BUDGETS[upTo(BUDGETS.length - 1)] ?? 'user'
      const [isTight, amount] = [random() < 0.4, random() < 0.2 ? 0 : 1 + upTo(1200)]
      return { do: 'budget', of, amount: isTight ? 1 + upTo(30) : amount, isTight, call: holdOf(random) }
    }
    return { do: 'delete', token: token() }
  })
}

const BUDGETS: readonly BudgetOf[] = ['token 0', 'token 1', 'user', 'group 0', 'group 1']
const GROUPS: readonly (readonly (0 | 1)[])[] = [[0], [1], [0, 1], [1, 0]]

function holdOf(random: () => number): HoldCommand {
  const one = <Value>(values: readonly Value[]): Value =>
    values[Math.floor(random() * values.length)] as Value
  return {
    process: one([0, 1, 2]),
    token: one([0, 1]),
    amount: random() < 0.85 ? 1 + Math.floor(random() * 400) : one(['all', 'more']),
    time: one(TIMES),
    groups: one(GROUPS),
  }
}

interface Row {
  readonly [column: string]: unknown
}

/** The accounts in a database. */
interface Balances {
  readonly tokens: ReadonlyMap<unknown, Row>
  readonly users: ReadonlyMap<unknown, Row>
  readonly budgets: ReadonlyMap<unknown, Row>
  /** The sum of a token's open holds; undefined if they are in the files of nodes. */
  readonly held: ReadonlyMap<unknown, number> | undefined
}

async function balancesIn({ sql, hasHolds }: LedgersOfBank<LedgerProcess>): Promise<Balances> {
  const by = async (key: string, table: string): Promise<ReadonlyMap<unknown, Row>> =>
    new Map((await sql(`select * from ${table}`)).map((row) => [row[key], row]))
  const held = new Map<unknown, number>()
  if (hasHolds)
    for (const { token_id: id, amount } of await sql('select token_id, amount from holds'))
      held.set(id, (held.get(id) ?? 0) + Number(amount))
  return {
    tokens: await by('id', 'tokens'),
    users: await by('id', 'users'),
    budgets: await by('account', 'budget_periods'),
    held: hasHolds ? held : undefined,
  }
}

/** A user and two tokens, their model, and the sequence that runs on them. */
class Slot {
  readonly #bench: LedgersOfBank<LedgerProcess>
  readonly #name: string
  /** Names of groups may have any characters. */
  readonly #groups: readonly [string, string]
  #userId = 0
  readonly #tokenIds: [number, number] = [0, 0]
  readonly #deleted: [boolean, boolean] = [false, false]
  readonly #model = new LedgerModel(TOKEN_QUOTA, USER_QUOTA)
  /** Amounts of the budgets that are set. */
  readonly #budgets = new Map<BudgetOf, number>()
  /** Amounts of the accounts of budgets, by the last call that stated them. */
  readonly #stated = new Map<string, number>()
  #sequence: readonly Command[] = []
  #beganWith = ''
  #next = 0
  #made = 0
  #open = new Map<string, OpenHold>()
  /** Holds that could not grow once. */
  readonly #refused = new Set<string>()
  /** Growths that were refused and may be granted later. */
  readonly #wanted = new Map<string, Set<number>>()
  /** What was granted later, and no growth has taken yet. */
  readonly #spare = new Map<string, number>()
  /** Changes that may not be durable yet. */
  #changes: Promise<unknown>[] = []
  violation: string | undefined
  commands = 0
  holds = 0
  refusals = 0
  ofBudgets = 0
  written = 0
  unwritten = 0
  grown = 0
  parked = 0

  constructor(bench: LedgersOfBank<LedgerProcess>, index: number) {
    this.#bench = bench
    this.#name = `slot ${index}`
    this.#groups = [`"a" of ${this.#name}: x`, `b of ${this.#name}`]
  }

  async begin(sequence: readonly Command[]): Promise<void> {
    const { store } = this.#bench
    if (this.#userId === 0) {
      const user = await store.write('createUser', newUser({ username: this.#name, quota: USER_QUOTA }))
      this.#userId = user.id
    }
    for (const token of [0, 1] as const) {
      if (this.#tokenIds[token] !== 0 && !this.#deleted[token]) continue
      const key = `${this.#name} ${token} ${this.#made++}`
      const made = await store.write(
        'createToken',
        newToken(this.#userId, { key, remain_quota: TOKEN_QUOTA }),
      )
      this.#tokenIds[token] = made.id
      this.#deleted[token] = false
      this.#budgets.delete(`token ${token}`)
      this.#model.remain[token] = TOKEN_QUOTA
      this.#model.used[token] = 0
      this.#model.unlimited[token] = false
    }
    this.#sequence = sequence
    this.#next = 0
    const { remain, user, spent } = this.#model
    this.#beganWith = JSON.stringify({ remain, user, spent: [...spent], budgets: [...this.#budgets] })
  }

  /** Runs the commands before that place. */
  async runUntil(place: number): Promise<void> {
    for (; this.#next < Math.min(place, this.#sequence.length); this.#next++) {
      const command = this.#sequence[this.#next]
      if (command === undefined || this.violation !== undefined) return
      this.commands += 1
      await this.#run(command)
    }
  }

  /** Holds exactly what is left, when nothing else is held: no lease may have been lost. */
  async end(random: () => number): Promise<void> {
    for (const token of [0, 1] as const) {
      if (this.violation !== undefined) return
      const call = { ...holdOf(random), token }
      await this.#hold({ ...call, amount: 'all' })
      await this.#hold({ ...call, amount: 'more' })
      for (const id of this.#open.keys()) this.#settle(id, 0, '')
    }
  }

  async #run(command: Command): Promise<void> {
    const { ledger } = this.#processOf(0)
    const model = this.#model
    const [id, hold] =
      'nth' in command ? ([...this.#open][command.nth % Math.max(this.#open.size, 1)] ?? []) : []
    switch (command.do) {
      case 'hold':
        return this.#hold(command)
      case 'extend':
        return id === undefined || hold?.isParked ? undefined : this.#extend(id, command.by)
      case 'park':
        if (id !== undefined && (await hold?.park())) model.park(id)
        return
      case 'mark':
        if (id === undefined || hold?.isParked) return
        hold?.markProgress(command.by)
        return model.mark(id, command.by)
      case 'show':
        return void (await hold?.whenDurable())
      case 'settle':
      case 'void': {
        if (id === undefined || !hold) return
        const isOther = command.do === 'settle' && command.isOther
        const group = this.#groups.find((name) => (name === hold.facts.group) !== isOther) ?? ''
        // A call is answered by a channel of one of its groups.
        const answering = hold.budgets.some(({ periodBudget }) => periodBudget.owner === `g:${group}`)
        const by = command.do === 'settle' ? command.by : 0
        // A charge above its hold may use up what other holds of its process have borrowed.
        const quota = this.#isLeased ? Math.min(by, hold.amount) : by
        this.#settle(id, quota, answering ? group : hold.facts.group)
        return
      }
      case 'grant': {
        model.user += command.by
        const quota = { mode: 'add', value: command.by, maxQuota: MAX_QUOTA } as const
        return void this.#changes.push(ledger.changeUser({ userId: this.#userId, quota }))
      }
      case 'set': {
        await this.#untilSynced()
        const { token } = command.call
        if (!this.#deleted[token]) model.remain[token] = command.remain
        this.#changes.push(this.#changeToken(token, { remain_quota: command.remain }))
        await this.#untilBorrowed()
        return this.#holdTooMuch(command.call)
      }
      case 'limit': {
        await this.#untilSynced()
        const { token } = command.call
        // A limited key cannot have less than nothing; its holder sets a quota with the limit.
        const remain = Math.max(0, model.remain[token])
        if (!this.#deleted[token]) {
          model.unlimited[token] = command.isUnlimited
          model.remain[token] = remain
        }
        this.#changes.push(
          this.#changeToken(token, { unlimited_quota: command.isUnlimited, remain_quota: remain }),
        )
        await this.#untilBorrowed()
        return this.#holdTooMuch(command.call)
      }
      case 'budget':
        return this.#setBudget(command)
      case 'delete': {
        this.#deleted[command.token] = true
        const tokenIds = [this.#tokenIds[command.token]]
        const deletion = { userId: this.#userId, tokenIds, nowSeconds: 1 }
        return void this.#changes.push(this.#bench.store.write('deleteTokens', deletion))
      }
    }
  }

  get #isLeased(): boolean {
    return this.#processOf(0).bankClient !== undefined
  }

  #processOf(index: number): LedgerProcess {
    const { nodes } = this.#bench
    return nodes[index % nodes.length] as LedgerProcess
  }

  #changeToken(token: 0 | 1, fields: TokenChange['fields']): Promise<unknown> {
    const tokenId = this.#tokenIds[token]
    const change = { tokenId, userId: this.#userId, fields, maxQuota: MAX_QUOTA, nowMs: 0 }
    return this.#processOf(0).ledger.changeToken(change)
  }

  #settle(id: string, quota: number, group: string): void {
    const hold = this.#open.get(id)
    if (!hold) return
    this.#syncGrowths()
    this.#open.delete(id)
    this.#model.settle(id, quota, group)
    this.#changes.push(hold.settle({ ...settlementOf(quota), group }))
    this.#syncGrowths()
  }

  /** Waits until the changes are durable, and the processes that borrow have told each other all of them. */
  async #untilSynced(): Promise<void> {
    const clients = this.#bench.nodes.flatMap(({ bankClient }) => bankClient ?? [])
    if (clients.length === 0) return
    await this.settled()
    await Promise.all([...this.#open.values()].map((hold) => hold.whenDurable()))
    const used = this.#tokenIds.map((id, token) => `(id = ${id} and used_quota = ${this.#model.used[token]})`)
    for (const endMs = performance.now() + PATIENCE_MS; performance.now() < endMs; await delay(20)) {
      await Promise.all(clients.map((client) => inTime(() => client.resync())))
      // A report leaves out the accounts that a loan of another process has locked at that moment.
      const counted = await this.#bench.sql(`select id from tokens where ${used.join(' or ')}`)
      if (counted.length === used.length) return
    }
  }

  /** Waits until a process that noticed a change has read the key, and then borrowed for its holds. */
  async #untilBorrowed(): Promise<void> {
    for (let n = 0; n < 4; n += 1) await this.#untilSynced()
  }

  async #setBudget({ of, isTight, amount: by, call: given }: Command & { do: 'budget' }): Promise<void> {
    const call: HoldCommand = {
      ...given,
      ...(of.startsWith('token') && { token: of === 'token 1' ? 1 : 0 }),
      ...(of.startsWith('group') && { groups: of === 'group 1' ? [1] : [0] }),
    }
    const account = accountAt(periodOf(of), this.#ownerOf(of), call.time)
    const amount = isTight ? this.#model.charged(account) + by : by
    await this.#untilSynced()
    this.#budgets.set(of, amount)
    const budget = amount > 0 ? { amount, period: periodOf(of) } : null
    const { ledger } = this.#processOf(0)
    if (of === 'user')
      this.#changes.push(ledger.changeUser({ userId: this.#userId, fields: { limits: { budget } } }))
    if (of === 'token 0') this.#changes.push(this.#changeToken(0, { budget }))
    if (of === 'token 1') this.#changes.push(this.#changeToken(1, { budget }))
    await this.settled()
    await this.#untilSynced()
    // A bank knows the amounts of keys and users by their rows, and those of groups by the next call.
    if (this.#isLeased && amount > 0 && !of.startsWith('group'))
      for (const time of TIMES) this.#stated.set(accountAt(periodOf(of), this.#ownerOf(of), time), amount)
    return this.#holdTooMuch(call)
  }

  /** No process holds more than is left, whatever it had borrowed before. */
  async #holdTooMuch(call: HoldCommand): Promise<void> {
    for (const process of [0, 1, 2]) await this.#hold({ ...call, process, amount: 'more' })
  }

  #ownerOf(of: BudgetOf): string {
    if (of === 'user') return `u:${this.#userId}`
    const which = of.endsWith('1') ? 1 : 0
    return of.startsWith('token') ? `t:${this.#tokenIds[which]}` : `g:${this.#groups[which]}`
  }

  async #extend(id: string, by: number): Promise<void> {
    const hold = this.#open.get(id)
    const sum = this.#model.open.get(id)
    if (!hold || !sum) return
    await this.settled()
    this.#syncGrowths()
    const spare = this.#spare.get(id) ?? 0
    // What it was granted before is used first.
    const missing = by - spare
    const fits = missing <= this.#model.growth(id, (account) => this.#stated.get(account) ?? 0)
    const before = hold.amount
    let grew = hold.grow(by)
    if (spare >= by) {
      // It was granted before, when another call had ended.
      this.#spare.set(id, spare - by)
      if (!grew || hold.amount !== before)
        this.#broken(`${id} did not grow by the ${spare} that it had been granted`)
      return
    }
    if (this.#isLeased && fits && !grew) {
      // A bank lends nothing again to a hold that was refused once.
      if (this.#refused.has(id)) return
      for (const endMs = performance.now() + PATIENCE_MS; !grew && performance.now() < endMs; ) {
        await delay(10)
        grew = hold.grow(by)
      }
    }
    if (!fits) {
      this.#refused.add(id)
      // One of them waits: the first that is affordable without the holds of other calls.
      this.#wanted.set(id, (this.#wanted.get(id) ?? new Set()).add(missing))
    }
    if (grew !== fits) this.#broken(`${id} was ${fits ? 'not ' : ''}extended by ${by}`)
    if (!grew) return
    sum.amount += missing
    this.#spare.delete(id)
  }

  /** A growth that was refused may be granted when other calls have ended; never more than is free. */
  #syncGrowths(): void {
    for (const [id, amounts] of this.#wanted) {
      const hold = this.#open.get(id)
      const sum = this.#model.open.get(id)
      if (!hold || !sum) this.#wanted.delete(id)
      else if (hold.amount !== sum.amount) {
        const free = this.#model.growth(id, (account) => this.#stated.get(account) ?? 0)
        const by = hold.amount - sum.amount
        if (!amounts.has(by) || by > free)
          this.#broken(`${id} grew from ${sum.amount} to ${hold.amount}, and ${free} were left`)
        sum.amount = hold.amount
        this.#spare.set(id, (this.#spare.get(id) ?? 0) + by)
        this.#wanted.delete(id)
        this.grown += 1
      }
    }
  }

  async #hold(command: HoldCommand): Promise<void> {
    const { process, token, time } = command
    // The key of a deleted token is refused before the ledger.
    if (this.#deleted[token]) return
    await this.settled()
    this.#syncGrowths()
    const budgets = this.#budgetsOf(command)
    for (const { account, amount } of budgets) this.#stated.set(account, amount)
    const free = this.#model.free(token, budgets)
    const amount = amountOf(command.amount, free)
    const fits = amount <= free
    if (fits !== amount <= this.#model.free(token, [])) this.ofBudgets += 1
    const id = `${this.#name} ${this.#made++}`
    const { unlimited, remain, user } = this.#model
    const where =
      `by process ${process} for token ${token} (${unlimited[token] ? 'unlimited' : `${remain[token]} remain`}), ` +
      `user (${user} remain) and ${JSON.stringify(budgets)} at ${new Date(time).toISOString()}`
    const hold = await this.#admitted(command, amount, id, fits)
    this.#syncGrowths()
    if (hold) {
      this.#open.set(id, hold)
      const names = budgets.map(({ account }) => account)
      const group = hold.facts.group
      this.#model.open.set(id, { token, amount, progress: 0, budgets: names, group })
      this.holds += 1
      if (!fits) this.#broken(`${amount} were held ${where}, and ${free} were left`)
    } else {
      if (amount !== MAX_QUOTA) this.refusals += 1
      // A growth may have come first.
      const isStill = amount <= this.#model.free(token, budgets)
      if (fits && isStill) this.#broken(`${amount} were not held ${where}, and ${free} were left`)
    }
  }

  #budgetsOf({ token, groups, time }: HoldCommand): ModelBudget[] {
    const budgets: BudgetOf[] = [
      `token ${token}`,
      'user',
      ...groups.map((group) => `group ${group}` as const),
    ]
    return budgets.flatMap((of) => {
      const amount = this.#budgets.get(of) ?? 0
      return amount > 0 ? [{ account: accountAt(periodOf(of), this.#ownerOf(of), time), amount }] : []
    })
  }

  /** Resolves to undefined if the call is refused, and will be. */
  async #admitted(
    { process, token, groups, time }: HoldCommand,
    amount: number,
    id: string,
    fits: boolean,
  ): Promise<OpenHold | undefined> {
    const { ledger, bankClient } = this.#processOf(process)
    const budget = (of: BudgetOf) => {
      const set = this.#budgets.get(of) ?? 0
      return set > 0 ? { amount: set, period: periodOf(of) } : undefined
    }
    const names = groups.map((group) => ({ name: this.#groups[group], budget: budget(`group ${group}`) }))
    const endMs = performance.now() + PATIENCE_MS
    for (;;) {
      try {
        const payer = await findChargedBalances(ledger.accounts, {
          token: { id: this.#tokenIds[token], budget: budget(`token ${token}`) },
          user: { id: this.#userId, budget: budget('user') },
          groups: names,
          startedMs: time,
        })
        const { account, budgets } = await ledger.accounts.ensureAffordable(payer, amount)
        const facts = { ...factsOf(id), group: names[0]?.name ?? '', started_ms: time }
        return ledger.admit(account, amount, facts, budgets)
      } catch (error) {
        const isOver = performance.now() > endMs
        if (error instanceof StoreUnavailable) {
          // A busy bank may be late; the gateway responds with 503, and clients try again.
          if (isOver) throw error
        } else if (!(error instanceof GatewayError)) throw error
        else if (!fits || !bankClient || isOver) return undefined
      }
      await delay(10)
    }
  }

  /** Waits until every change is durable, so that the next call sees it. */
  async settled(): Promise<void> {
    await Promise.all(this.#changes.splice(0))
  }

  /** Whether a hold is being written: then the file may have it or not. */
  get isBeingWritten(): boolean {
    return [...this.#open.values()].some(({ isUnwritten, isDurable }) => !isUnwritten && !isDurable)
  }

  crashed(): void {
    this.#syncGrowths()
    this.#wanted.clear()
    this.#spare.clear()
    const isWritten = (id: string): boolean => this.#open.get(id)?.isDurable === true
    const written = [...this.#open.keys()].filter(isWritten).length
    this.written += written
    this.unwritten += this.#open.size - written
    this.#model.crash(isWritten)
    this.#open = new Map([...this.#open].filter(([id]) => this.#model.open.has(id)))
    this.parked += this.#open.size
  }

  /** Lowers the quota of a token, and holds all that is left of it before the processes resume their parked holds. */
  async changeBeforeResumption(random: () => number): Promise<void> {
    if (this.violation !== undefined || this.#open.size === 0) return
    const call = holdOf(random)
    const remain = this.#model.held(call.token) + Math.floor(random() * 100)
    await this.#run({ do: 'set', remain, call })
    const before = new Set(this.#open.keys())
    await this.#hold({ ...call, amount: 'all' })
    await this.#holdTooMuch(call)
    for (const id of this.#open.keys()) if (!before.has(id)) this.#settle(id, 0, '')
  }

  /** Takes over the parked holds as the restarted processes have resumed them. */
  resumed(holds: ReadonlyMap<string, OpenHold>): void {
    for (const id of this.#open.keys()) {
      const hold = holds.get(id)
      if (hold) this.#open.set(id, hold)
      else this.#broken(`the parked hold ${id} was not resumed`)
    }
  }

  /** Sum of the token's holds that the file has. */
  #heldInFile(token: 0 | 1): number {
    const sums = [...this.#model.open].filter(
      ([id, sum]) => sum.token === token && this.#open.get(id)?.isDurable === true,
    )
    return sums.reduce((total, [, { amount }]) => total + amount, 0)
  }

  /** What the database and the memory have otherwise than the model. */
  async differences(balances: Balances): Promise<readonly string[]> {
    this.#syncGrowths()
    const { remain, used, user: userRemain, userUsed, spent } = this.#model
    const user = balances.users.get(this.#userId)
    const differences: string[] = []
    const same = (where: string, found: readonly unknown[], expected: readonly number[]): void => {
      if (found.join() !== expected.join())
        differences.push(`${where}: ${found.join()}, not ${expected.join()}`)
    }
    for (const token of [0, 1] as const) {
      const id = this.#tokenIds[token]
      const row = balances.tokens.get(id)
      same(
        'in the database',
        [row?.['remain_quota'], row?.['used_quota'], user?.['quota'], user?.['used_quota']],
        [remain[token], used[token], userRemain, userUsed],
      )
      if (balances.held) same('held in the file', [balances.held.get(id) ?? 0], [this.#heldInFile(token)])
      const { ledger, bankClient } = this.#processOf(0)
      if (bankClient) continue
      const account = await accountOf(ledger, id)
      same(
        'in memory',
        [account.token.remain, account.token.held, account.user.remain, account.user.held],
        [remain[token], this.#model.held(token), userRemain, this.#model.held()],
      )
    }
    for (const [account, sum] of spent)
      same(`of ${account}`, [balances.budgets.get(account)?.['used'] ?? 0], [sum])
    return differences
  }

  /** Notes differences, which violate the model. */
  report(when: string, [first]: readonly string[]): void {
    if (first !== undefined) this.#broken(`${when}, ${first}`)
  }

  #broken(what: string): void {
    const made = this.#sequence.slice(0, this.#next + 1).toReversed()
    const commands = made.map((command) => JSON.stringify(command)).join('\n')
    this.violation ??= `${what}, at command ${this.#next} of (the last first)\n${commands}\nfrom ${this.#beganWith}`
  }
}

function amountOf(wanted: HoldCommand['amount'], free: number): number {
  if (wanted === 'all') return Math.max(free, 1)
  return wanted === 'more' ? Math.max(free, 0) + 1 : wanted
}

function periodOf(of: BudgetOf): 'day' | 'week' | 'month' {
  return PERIODS[of.split(' ')[0] as keyof typeof PERIODS]
}
