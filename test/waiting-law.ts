import { asGatewayError } from '../src/errors.ts'
import { setTimeout as delay } from 'node:timers/promises'
import { payerOf } from '../src/accounts/ledger/find-payer.ts'
import type { OpenHold } from '../src/accounts/ledger/open-hold.ts'
import { affordableAmount } from '../src/accounts/ledger/payer.ts'
import { QuotaHeld, Unaffordable } from '../src/accounts/ledger/quota-refusal.ts'
import { StoreUnavailable } from '../src/store/store-unavailable.ts'
import { randomFrom } from './fixtures/random.ts'
import type { LedgerProcess, LedgersOfBank } from './ledger-banks.ts'
import { factsOf, settlementOf } from './ledger-calls.ts'
import { newToken, newUser } from './store-rows.ts'

/** Processes of each run; one that has the database to itself takes the calls of all. */
const PROCESSES = 3
const [USER_QUOTA, TOKEN_QUOTA, BUDGET] = [4000, 3000, 2500]
/** Waits of calls; the last ones must not be used up where another call has ended. */
const WAITS_MS = [0, 40, 400]
const LONG_WAIT_MS = 20_000
/** What a busy machine may add to a wait. */
const SLACK_MS = 20_000
const PERIOD = 'month'

/** The result of the rounds. */
export interface WaitingReport {
  readonly rounds: number
  readonly admitted: number
  /** Calls that were admitted after a wait. */
  readonly waited: number
  /** Calls refused because others held what they needed, and because it was spent. */
  readonly held: number
  readonly spent: number
  /** Growths that were granted after they had been refused. */
  readonly grown: number
  /** Calls for which the provider reported more than was held. */
  readonly exceeded: number
  readonly crashes: number
  /** What was charged beyond the holds, in quota units. */
  readonly excess: number
  /** The first violation, if any. */
  readonly violation: string | undefined
}

/**
 * Runs rounds of calls at random times on random processes and balances: calls that wait, grow, are charged
 * more than they hold, and are lost in crashes. After each round the sums of the database must be what may be
 * spent, and calls that wait at its end must be admitted once the others have ended. The same seed gives the
 * same calls.
 */
export async function runWaiting(
  open: (count: number) => Promise<LedgersOfBank<LedgerProcess>>,
  seed: number,
  { rounds, calls }: { readonly rounds: number; readonly calls: number },
): Promise<WaitingReport> {
  const random = randomFrom(seed)
  const bench = await open(PROCESSES)
  const total: Counts = {
    admitted: 0,
    waited: 0,
    held: 0,
    spent: 0,
    grown: 0,
    exceeded: 0,
    crashes: 0,
    excess: 0,
  }
  let violation: string | undefined
  let round = 0
  for (; round < rounds && violation === undefined; round += 1) {
    const one = new Round(bench, `round ${round}`, random, total)
    violation = await one.run(calls)
  }
  return { rounds: round, ...total, violation }
}

type Counts = { -readonly [Name in keyof Omit<WaitingReport, 'rounds' | 'violation'>]: number }

/** A call of a round. */
interface Planned {
  readonly id: string
  readonly process: number
  readonly token: 0 | 1
  readonly group: 0 | 1
  readonly amount: number
  readonly startMs: number
  readonly lastsMs: number
  readonly waitMs: number
  /** What it tries to add to its hold; 0 for a call that does not grow. */
  readonly growth: number
  /** Part of its hold that it is charged; more than 1 if its provider reports more. */
  readonly part: number
}

/** A user with two tokens, and two groups with a budget each. */
class Round {
  readonly #bench: LedgersOfBank<LedgerProcess>
  readonly #name: string
  readonly #random: () => number
  readonly #counts: Counts
  #userId = 0
  #tokenIds: readonly number[] = []
  readonly #settling = new Set<Promise<void>>()
  /** What was charged beyond the holds: of the user, of each token and of each group. */
  #excess = 0
  readonly #excessOf = new Map<string, number>()
  /** Rises with each crash, after which calls of earlier processes do nothing any more. */
  #generation = 0
  #isCrashing = false
  /** Resolves when no crash is under way. */
  #calm: Promise<void> = Promise.resolve()
  #violation: string | undefined

  constructor(bench: LedgersOfBank<LedgerProcess>, name: string, random: () => number, counts: Counts) {
    this.#bench = bench
    this.#name = name
    this.#random = random
    this.#counts = counts
  }

  async run(calls: number): Promise<string | undefined> {
    const { store } = this.#bench
    const user = await store.write('createUser', newUser({ username: this.#name, quota: USER_QUOTA }))
    this.#userId = user.id
    const ids: number[] = []
    for (const token of [0, 1])
      ids.push(
        (
          await store.write(
            'createToken',
            newToken(user.id, { key: `${this.#name} ${token}`, remain_quota: TOKEN_QUOTA }),
          )
        ).id,
      )
    this.#tokenIds = ids
    const planned = Array.from({ length: calls }, (_, at) => this.#plan(at))
    const crashAt = this.#random() < 0.4 ? this.#random() * 60 : undefined
    const under = planned.map((call) => this.#call(call))
    if (crashAt !== undefined) await this.#crash(crashAt)
    await Promise.all(under)
    await this.#lastInLine()
    await this.#compare()
    return this.#violation && `${this.#name}: ${this.#violation}`
  }

  #plan(at: number): Planned {
    const upTo = (max: number): number => Math.floor(this.#random() * (max + 1))
    const dice = this.#random()
    return {
      id: `${this.#name} ${at}`,
      process: upTo(PROCESSES - 1),
      token: upTo(1) as 0 | 1,
      group: upTo(1) as 0 | 1,
      amount: 1 + upTo(700),
      startMs: upTo(60),
      lastsMs: upTo(30),
      waitMs: WAITS_MS[upTo(WAITS_MS.length - 1)] ?? 0,
      growth: this.#random() < 0.3 ? 1 + upTo(300) : 0,
      // Most calls cost all that they hold, so that whatever is granted twice is spent.
      part: dice < 0.6 ? 1 : dice < 0.92 ? this.#random() : 1 + this.#random(),
    }
  }

  #processOf(index: number): LedgerProcess {
    const { nodes } = this.#bench
    return nodes[index % nodes.length] as LedgerProcess
  }

  async #call(call: Planned): Promise<void> {
    await delay(call.startMs)
    // No call begins on a process that was started before all others were killed: it would never be ended.
    await this.#calm
    const generation = this.#generation
    const hold = await this.#admitted(call, call.waitMs)
    if (!hold || generation !== this.#generation) return
    if (call.growth > 0) await this.#grow(hold, call.growth)
    await delay(call.lastsMs)
    if (generation === this.#generation && !this.#isCrashing) this.#settle(hold, call)
  }

  /** Resolves to undefined if the call is refused, which must be in time and for a reason. */
  async #admitted(call: Planned, waitMs: number): Promise<OpenHold | undefined> {
    const generation = this.#generation
    const beganAt = performance.now()
    try {
      return await this.#admit(call, waitMs)
    } catch (error) {
      if (error instanceof QuotaHeld) this.#counts.held += 1
      // A call of another may use up the key meanwhile.
      else if (error instanceof Unaffordable || asGatewayError(error)?.code === 'token_exhausted')
        this.#counts.spent += 1
      // Processes that were killed answer nothing, and a busy bank may be late.
      else if (!(error instanceof StoreUnavailable) && generation === this.#generation && !this.#isCrashing)
        throw error
      return undefined
    } finally {
      const tookMs = performance.now() - beganAt
      if (tookMs > waitMs + SLACK_MS) this.#broken(`${call.id} waited for ${tookMs} ms`)
    }
  }

  async #admit({ id, process, token, group, amount }: Planned, waitMs: number): Promise<OpenHold> {
    const { ledger } = this.#processOf(process)
    const names = `${this.#name} group ${group}`
    const payer = await payerOf(ledger.accounts, {
      token: { id: this.#tokenIds[token] as number, budget: undefined },
      user: { id: this.#userId, budget: undefined },
      groups: [{ name: names, budget: { amount: BUDGET, period: PERIOD } }],
      startedMs: Date.now(),
    })
    const facts = { ...factsOf(id), group: names, started_ms: Date.now() }
    const { account, budgets } = payer
    this.#counts.admitted += 1
    if (amount <= affordableAmount(account, budgets)) return ledger.admit(account, amount, facts, budgets)
    this.#counts.admitted -= 1
    const hold = await ledger.admitInTime(payer, amount, facts, { waitMs, onLeft: () => () => {} })
    this.#counts.admitted += 1
    this.#counts.waited += 1
    return hold
  }

  /** A stream requests more quota with every frame. */
  async #grow(hold: OpenHold, by: number): Promise<void> {
    for (let frame = 0; frame < 5; frame += 1) {
      if (hold.isSettled || this.#isCrashing) return
      if (hold.grow(by)) {
        if (frame > 0) this.#counts.grown += 1
        return
      }
      await delay(5)
    }
  }

  #settle(hold: OpenHold, { part, token, group }: Planned): void {
    const quota = Math.ceil(hold.amount * part)
    const excess = Math.max(0, quota - hold.amount)
    if (excess > 0) this.#counts.exceeded += 1
    this.#counts.excess += excess
    this.#excess += excess
    for (const name of [`token ${token}`, `group ${group}`])
      this.#excessOf.set(name, (this.#excessOf.get(name) ?? 0) + excess)
    const settling = hold
      .settle({ ...settlementOf(quota), group: hold.facts.group, ended_ms: hold.facts.started_ms })
      .finally(() => this.#settling.delete(settling))
    this.#settling.add(settling)
  }

  async #settled(): Promise<void> {
    while (this.#settling.size > 0) await Promise.all(this.#settling)
  }

  async #crash(atMs: number): Promise<void> {
    await delay(atMs)
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#calm = promise
    this.#isCrashing = true
    await this.#settled()
    await this.#bench.crash()
    // A call that was admitted meanwhile may be of either generation of processes.
    this.#generation += 1
    this.#counts.crashes += 1
    this.#isCrashing = false
    resolve()
  }

  /** Calls that wait when nothing else is left are admitted, if what was spent leaves enough. */
  async #lastInLine(): Promise<void> {
    await this.#settled()
    const first = { ...this.#plan(0), id: `${this.#name} first`, part: this.#random(), lastsMs: 0, growth: 0 }
    const free = await this.#left(first)
    if (free < 2) return
    const hold = await this.#admitted({ ...first, amount: Math.ceil(free * 0.9) }, LONG_WAIT_MS)
    if (!hold) return this.#broken(`${free} were left, and 90 % of it was not held`)
    const waiting = [1, 2, 3].map((at) => ({
      ...first,
      id: `${this.#name} last ${at}`,
      process: this.#plan(0).process,
      amount: Math.max(1, Math.ceil(free * 0.2)),
      part: 0,
    }))
    const last = waiting.map(async (call) => {
      const admitted = await this.#admitted(call, LONG_WAIT_MS)
      if (admitted) this.#settle(admitted, call)
      return admitted !== undefined
    })
    await delay(10)
    const quota = Math.ceil(hold.amount * first.part)
    this.#settle(hold, { ...first, part: first.part })
    const fits = Math.ceil(free * 0.2) <= free - quota
    const admitted = await Promise.all(last)
    if (admitted.some((one) => one !== fits))
      this.#broken(`of ${free}, ${quota} were charged, and calls for 20 % were admitted: ${admitted.join()}`)
    await this.#settled()
  }

  /** What may be spent with the token and the group of a call, by the database. */
  async #left({ token, group }: Planned): Promise<number> {
    const [user, ofToken, budget] = await this.#sums(token, group)
    return Math.min(USER_QUOTA - user, TOKEN_QUOTA - ofToken, BUDGET - budget)
  }

  async #sums(token: number, group: number): Promise<readonly [number, number, number]> {
    for (const { bankClient } of this.#bench.nodes) await bankClient?.flush()
    const sumOf = async (statement: string): Promise<number> => {
      const [row] = await this.#bench.sql(statement)
      return Number(row?.['used'] ?? 0)
    }
    const owner = `g:${this.#name} group ${group}`
    return [
      await sumOf(`select used_quota as used from users where id = ${this.#userId}`),
      await sumOf(`select used_quota as used from tokens where id = ${this.#tokenIds[token]}`),
      await sumOf(`select sum(used) as used from budget_periods where account like '%:${owner}'`),
    ]
  }

  async #compare(): Promise<void> {
    for (const index of [0, 1] as const) {
      const [user, token, group] = await this.#sums(index, index)
      this.#atMost('the user', user, USER_QUOTA + this.#excess)
      this.#atMost(`token ${index}`, token, TOKEN_QUOTA + (this.#excessOf.get(`token ${index}`) ?? 0))
      this.#atMost(`group ${index}`, group, BUDGET + (this.#excessOf.get(`group ${index}`) ?? 0))
    }
    const open = this.#bench.nodes.flatMap(({ ledger }) => [...ledger.openHolds])
    if (open.length > 0) this.#broken(`${open.map(({ id }) => id).join()} did not end`)
    if (!this.#bench.hasHolds) return
    const rows = await this.#bench.sql('select id from holds')
    if (rows.length > 0) this.#broken(`${rows.length} holds are left in the file`)
  }

  #atMost(what: string, spent: number, most: number): void {
    if (spent > most) this.#broken(`${what} has spent ${spent}, of at most ${most}`)
  }

  #broken(what: string): void {
    this.#violation ??= what
  }
}
