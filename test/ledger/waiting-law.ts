import { hash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { findChargedBalances } from '../../src/accounts/ledger/find-charged-balances.ts'
import type { OpenHold } from '../../src/accounts/ledger/open-hold.ts'
import { affordableAmount } from '../../src/accounts/ledger/charged-balances.ts'
import { QuotaHeldByOtherCalls, Unaffordable } from '../../src/accounts/ledger/quota-refusal.ts'
import { asGatewayError } from '../../src/errors.ts'
import { LocalDigests, searchForOneDigest } from '../../src/call/digests/digest-store.ts'
import { StoreUnavailable } from '../../src/store/store-unavailable.ts'
import { Metrics } from '../../src/telemetry/metrics.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { Settlement } from '../../src/domain/records/usage.ts'
import type { LedgerProcess, LedgersOfBank } from './banks.ts'
import { factsOf, patiently, settlementOf } from './calls.ts'
import { newToken, newUser } from '../stores/rows.ts'

/** Processes of each run; one that has the database to itself takes the calls of all. */
const PROCESSES = 3
const [USER_QUOTA, TOKEN_QUOTA, BUDGET] = [4000, 3000, 2500]
/** Waits of calls; the last ones must not be used up where another call has ended. */
const WAITS_MS = [0, 40, 400]
const LONG_WAIT_MS = 20_000
/** What a busy machine may add to a wait. */
const SLACK_MS = 20_000
const PERIOD = 'month'
/** Conversations of a round; each call sends one, as far as it got, and appends to it. */
const CONVERSATIONS = 3
/** The processes crash in one round of this many. */
const CRASH_EVERY = 3
/**
 * Two calls of each round, one after the other, so that a prompt is continued however slow the machine is: it was
 * reported as fewer tokens than it has bytes, and the other channel of the second call may count each byte.
 */
const FIRST_PROMPT: Partial<Planned> = {
  amount: 100,
  startMs: 0,
  lastsMs: 0,
  waitMs: LONG_WAIT_MS,
  growth: 0,
  part: 0.5,
  prompt: { conversation: CONVERSATIONS, appended: 100 },
  failsOver: false,
}
const NEXT_PROMPT: Partial<Planned> = {
  ...FIRST_PROMPT,
  amount: 10,
  prompt: { conversation: CONVERSATIONS, appended: 1 },
  failsOver: true,
}
/** How long reported prompts are remembered, and how many. */
const RETENTION = { ms: 3_600_000, most: 1000 }

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
  /** Calls whose prompt continued one that was reported, and those whose hold had to be raised for another channel. */
  readonly continued: number
  readonly raised: number
  /** Calls for which the provider reported more than was held, by the metric. */
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
    continued: 0,
    raised: 0,
    exceeded: 0,
    crashes: 0,
    excess: 0,
  }
  const exceeded = new ExceededHolds()
  let violation: string | undefined
  let round = 0
  for (; round < rounds && violation === undefined; round += 1) {
    const one = new Round(bench, `round ${round}`, random, total, exceeded)
    violation = await one.run(calls, round % CRASH_EVERY === 0)
  }
  return { rounds: round, ...total, violation }
}

/** What `sluice_hold_exceeded_total` says of calls that are charged more than they hold. */
class ExceededHolds {
  readonly #metrics = new Metrics({
    channels: () => [],
    connections: { open: 0, refused: 0, displaced: 0 },
    openStreams: () => 0,
    openWebSockets: () => 0,
    openCalls: () => 0,
    openHolds: () => 0,
    openBatches: () => 0,
    openBreakers: () => 0,
    missingModels: () => [],
    providerLimits: () => [],
    modelEnds: () => [],
    pendingWrites: () => 0,
    isStorageOk: () => true,
    isDegraded: () => false,
    droppedLines: () => 0,
    droppedMessages: () => 0,
    isRedisReachable: undefined,
  })
  /** What was charged and held, by the names of the calls, which are their channels in the metric. */
  readonly #settled = new Map<string, { readonly quota: number; readonly held: number }>()

  /** Records the settlement of a call as the relay does. */
  settled(settlement: Settlement, held: number): void {
    this.#metrics.settled(settlement, true, 1, held)
    this.#settled.set(settlement.channel, { quota: settlement.quota, held })
  }

  /** What the calls that the metric counts were charged beyond their holds; a call that it counts twice is NaN. */
  counted(): ReadonlyMap<string, number> {
    const counted = new Map<string, number>()
    for (const metric of this.#metrics.read()) {
      if (metric.name !== 'sluice_hold_exceeded_total') continue
      for (const { labels, value } of metric.samples()) {
        const channel = labels['channel'] ?? ''
        const { quota = Number.NaN, held = 0 } = this.#settled.get(channel) ?? {}
        counted.set(channel, value === 1 ? quota - held : Number.NaN)
      }
    }
    return counted
  }
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
  /** The conversation that it sends, and what it appends to that, in bytes; undefined for a call without one. */
  readonly prompt: { readonly conversation: number; readonly appended: number } | undefined
  /** Whether another channel is tried, which may count every byte as a token. */
  readonly failsOver: boolean
}

/** The prompt of a call. */
interface SentPrompt {
  readonly conversation: number
  readonly bytes: number
  /** Upper bound of its tokens. */
  readonly bound: number
}

/** A user with two tokens, and two groups with a budget each. */
class Round {
  readonly #bench: LedgersOfBank<LedgerProcess>
  readonly #name: string
  readonly #random: () => number
  readonly #counts: Counts
  #userId = 0
  #tokenIds: readonly number[] = []
  readonly #exceeded: ExceededHolds
  readonly #settling = new Set<Promise<void>>()
  /** The calls that were settled. */
  readonly #charged = new Map<string, Pick<Planned, 'token' | 'group'>>()
  /** What is remembered of prompts that were reported, and the bytes of each conversation so far. */
  #digests = new LocalDigests()
  readonly #conversations = new Map<number, number>()
  /** Rises with each crash, after which calls of earlier processes do nothing any more. */
  #generation = 0
  #isCrashing = false
  /** Resolves when no crash is under way. */
  #calm: Promise<void> = Promise.resolve()
  #violation: string | undefined

  constructor(
    bench: LedgersOfBank<LedgerProcess>,
    name: string,
    random: () => number,
    counts: Counts,
    exceeded: ExceededHolds,
  ) {
    this.#exceeded = exceeded
    this.#bench = bench
    this.#name = name
    this.#random = random
    this.#counts = counts
  }

  async run(calls: number, crashes: boolean): Promise<string | undefined> {
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
    const crashMs = this.#random() * 60
    const first = { ...this.#plan(calls), ...FIRST_PROMPT }
    const next = { ...this.#plan(calls + 1), ...NEXT_PROMPT }
    const continueFirst = async (): Promise<void> => {
      await this.#call(first)
      await this.#call(next)
    }
    const under = [continueFirst(), ...planned.map((call) => this.#call(call))]
    if (crashes) await this.#crash(crashMs)
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
      prompt:
        this.#random() < 0.5 ? { conversation: upTo(CONVERSATIONS - 1), appended: 1 + upTo(150) } : undefined,
      failsOver: this.#random() < 0.3,
    }
  }

  /** The prompt of a call; its bound is what was reported for the part that was sent before, and what was appended. */
  #sent({ conversation, appended }: NonNullable<Planned['prompt']>): SentPrompt {
    const before = this.#conversations.get(conversation) ?? 0
    const bytes = before + appended
    const found = this.#digests.find(searchForOneDigest(0, this.#digestOf(conversation, before)), () => true)
    if (found) this.#counts.continued += 1
    return { conversation, bytes, bound: found ? Math.min(bytes, found.value + appended) : bytes }
  }

  #digestOf(conversation: number, bytes: number): Buffer {
    return hash('sha256', `${this.#name} ${conversation} ${bytes}`, 'buffer')
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
    const sent = call.prompt && this.#sent(call.prompt)
    const output = call.amount
    const hold = await this.#admitted({ ...call, amount: output + (sent?.bound ?? 0) }, call.waitMs)
    if (!hold || generation !== this.#generation) return
    const isOver = (): boolean => generation !== this.#generation || this.#isCrashing
    if (sent && call.failsOver && sent.bound < sent.bytes) {
      this.#counts.raised += 1
      const refusal = await hold.raiseTo(output + sent.bytes, { waitMs: call.waitMs, isOver })
      if (isOver()) return
      // The other channel is not tried.
      if (refusal) return this.#settle(hold, { ...call, part: 0 })
    }
    if (call.growth > 0) await this.#grow(hold, call.growth)
    await delay(call.lastsMs)
    if (!isOver()) this.#settle(hold, call, sent)
  }

  /** Resolves to undefined if the call is refused, which must be in time and for a reason. */
  async #admitted(call: Planned, waitMs: number): Promise<OpenHold | undefined> {
    const generation = this.#generation
    const beganAt = performance.now()
    try {
      return await this.#admit(call, waitMs)
    } catch (error) {
      if (error instanceof QuotaHeldByOtherCalls) this.#counts.held += 1
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

  // A busy bank may be late, which says nothing of the quota.
  async #admittedAtLast(call: Planned): Promise<OpenHold | undefined> {
    try {
      return await patiently(() => this.#admit(call, LONG_WAIT_MS))
    } catch (error) {
      if (error instanceof Unaffordable || asGatewayError(error)?.code === 'token_exhausted') return undefined
      throw error
    }
  }

  async #admit({ id, process, token, group, amount }: Planned, waitMs: number): Promise<OpenHold> {
    const { ledger } = this.#processOf(process)
    const names = `${this.#name} group ${group}`
    const payer = await findChargedBalances(ledger.accounts, {
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

  #settle(hold: OpenHold, { part, token, group }: Planned, sent?: SentPrompt): void {
    const quota = Math.ceil(hold.amount * part)
    const settlement = {
      ...settlementOf(quota),
      channel: hold.id,
      group: hold.facts.group,
      ended_ms: hold.facts.started_ms,
    }
    this.#charged.set(hold.id, { token, group })
    this.#exceeded.settled(settlement, hold.amount)
    if (sent) {
      this.#conversations.set(sent.conversation, sent.bytes)
      const digest = this.#digestOf(sent.conversation, sent.bytes)
      this.#digests.remember(0, digest, Math.ceil(sent.bound * part), RETENTION)
    }
    const settling = hold.settle(settlement).finally(() => this.#settling.delete(settling))
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
    this.#digests = new LocalDigests()
    // A call that was admitted meanwhile may be of either generation of processes.
    this.#generation += 1
    this.#counts.crashes += 1
    this.#isCrashing = false
    resolve()
  }

  /** Calls that wait when nothing else is left are admitted, if what was spent leaves enough. */
  async #lastInLine(): Promise<void> {
    await this.#settled()
    const plan = this.#plan(0)
    const first = { ...plan, id: `${this.#name} first`, part: this.#random(), lastsMs: 0, growth: 0 }
    const { free, hold } = await this.#mostOfTheRest(first)
    if (!hold) return
    const waiting = [1, 2, 3].map((at) => ({
      ...first,
      id: `${this.#name} last ${at}`,
      process: this.#plan(0).process,
      amount: Math.max(1, Math.ceil(free * 0.2)),
      part: 0,
    }))
    const last = waiting.map(async (call) => {
      const admitted = await this.#admittedAtLast(call)
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

  /** Admits a call for 90 % of what is left; there is no hold if nothing is. */
  async #mostOfTheRest(call: Planned): Promise<{ readonly free: number; readonly hold?: OpenHold }> {
    for (;;) {
      const free = await this.#left(call)
      if (free < 2) return { free }
      const hold = await this.#admittedAtLast({ ...call, amount: Math.ceil(free * 0.9) })
      if (hold) return { free, hold }
      // A node on a busy machine may report its last charges later than a read of the balances waits for them.
      if ((await this.#left(call)) < free) continue
      this.#broken(`${free} were left, and 90 % of it was not held`)
      return { free }
    }
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
    const excess = { all: 0, tokens: [0, 0], groups: [0, 0] }
    for (const [id, beyond] of this.#exceeded.counted()) {
      const call = this.#charged.get(id)
      if (!call) continue
      if (!(beyond > 0)) this.#broken(`${id} counts as a call above its hold, by ${beyond}`)
      this.#counts.exceeded += 1
      this.#counts.excess += beyond
      excess.all += beyond
      excess.tokens[call.token] = (excess.tokens[call.token] ?? 0) + beyond
      excess.groups[call.group] = (excess.groups[call.group] ?? 0) + beyond
    }
    for (const index of [0, 1] as const) {
      const [user, token, group] = await this.#sums(index, index)
      this.#atMost('the user', user, USER_QUOTA + excess.all)
      this.#atMost(`token ${index}`, token, TOKEN_QUOTA + (excess.tokens[index] ?? 0))
      this.#atMost(`group ${index}`, group, BUDGET + (excess.groups[index] ?? 0))
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
