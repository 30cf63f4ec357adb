import { join } from 'node:path'
import { Ledger } from '../src/accounts/ledger/ledger.ts'
import type { OpenHold } from '../src/accounts/ledger/open-hold.ts'
import { openSqliteStore } from '../src/store/sqlite/open.ts'
import type { Store } from '../src/store/store.ts'
import { databaseOf, type TokenBalance, type UserBalance } from './fixtures/database.ts'
import { randomFrom } from './fixtures/random.ts'
import { accountOf, factsOf, settlementOf } from './ledger-calls.ts'
import { LedgerModel } from './ledger-model.ts'
import { newToken, newUser, SECRETS, temporaryFolder } from './store-rows.ts'

type Command =
  | { readonly do: 'hold'; readonly token: 0 | 1; readonly amount: number }
  | { readonly do: 'extend' | 'mark' | 'settle'; readonly nth: number; readonly by: number }
  | { readonly do: 'void' | 'show'; readonly nth: number }
  | { readonly do: 'grant'; readonly by: number }
  | { readonly do: 'set'; readonly token: 0 | 1; readonly remain: number }
  | { readonly do: 'delete'; readonly token: 0 | 1 }

/** The result of the sequences. */
export interface SequencesReport {
  readonly sequences: number
  readonly commands: number
  readonly holds: number
  readonly refusals: number
  readonly crashes: number
  /** Holds that a crash found on the disk, and those that it did not find there. */
  readonly written: number
  readonly unwritten: number
  /** The shortest sequence that violated the model, if any, and the place. */
  readonly violation: string | undefined
}

const AT_ONCE = 250
const MAX_COMMANDS = 60
const MAX_QUOTA = 1_000_000
const [TOKEN_QUOTA, USER_QUOTA] = [1000, 1500]

/**
 * Runs sequences of commands against the ledger on a real store, hundreds at a time on separate accounts, and
 * compares each result and the final state, in memory and in the file, with a model. The same seed gives the
 * same commands.
 */
export async function runSequences(seed: number, count: number): Promise<SequencesReport> {
  const random = randomFrom(seed)
  const bench = await LedgerRun.open()
  const slots = Array.from({ length: Math.min(AT_ONCE, count) }, (_, index) => new Slot(bench, index))
  const compareAll = async (when: string): Promise<void> => {
    await Promise.all(slots.map((slot) => slot.settled()))
    // Writes are committed in order: after an empty write, all are in the file, except holds that were
    // written meanwhile.
    do await bench.ledger.probe()
    while (slots.some((slot) => slot.isBeingWritten))
    const balances = bench.balances()
    await Promise.all(slots.map((slot) => slot.compare(when, balances)))
  }
  let violation: string | undefined
  let sequences = 0
  while (sequences < count && violation === undefined) {
    await Promise.all(slots.map((slot) => slot.begin(sequenceOf(random))))
    // One crash in the middle, and one at the end, after which nothing is held.
    for (const place of [Math.floor(random() * MAX_COMMANDS), MAX_COMMANDS]) {
      await Promise.all(slots.map((slot) => slot.runUntil(place)))
      await compareAll('before a crash')
      await bench.crash()
      for (const slot of slots) slot.crashed()
      await compareAll('after a crash')
    }
    sequences += slots.length
    violation = slots
      .flatMap((slot) => slot.violation ?? [])
      .toSorted((a, b) => a.length - b.length)
      .at(0)
  }
  const { tokens, users, days } = await bench.store.read('conservation')
  if (tokens.length + users.length + days.length > 0) violation ??= 'what was charged is not what was counted'
  await bench.store.close()
  const sum = (of: (slot: Slot) => number): number => slots.reduce((total, slot) => total + of(slot), 0)
  return {
    sequences,
    commands: sum(({ commands }) => commands),
    holds: sum(({ holds }) => holds),
    refusals: sum(({ refusals }) => refusals),
    crashes: bench.crashes,
    written: sum(({ written }) => written),
    unwritten: sum(({ unwritten }) => unwritten),
    violation,
  }
}

function sequenceOf(random: () => number): Command[] {
  const upTo = (max: number): number => Math.floor(random() * (max + 1))
  const token = (): 0 | 1 => (random() < 0.5 ? 0 : 1)
  const length = upTo(MAX_COMMANDS)
  return Array.from({ length }, (): Command => {
    const dice = random()
    if (dice < 0.34) return { do: 'hold', token: token(), amount: upTo(400) }
    if (dice < 0.4) return { do: 'show', nth: upTo(9) }
    if (dice < 0.58) return { do: 'settle', nth: upTo(9), by: upTo(500) }
    if (dice < 0.65) return { do: 'void', nth: upTo(9) }
    if (dice < 0.76) return { do: 'extend', nth: upTo(9), by: upTo(300) }
    if (dice < 0.86) return { do: 'mark', nth: upTo(9), by: upTo(300) }
    if (dice < 0.92) return { do: 'grant', by: upTo(800) }
    if (dice < 0.995) return { do: 'set', token: token(), remain: upTo(TOKEN_QUOTA) }
    return { do: 'delete', token: token() }
  })
}

function storeIn(folder: string): Promise<Store> {
  return openSqliteStore({ path: join(folder, 'sluice.db'), secrets: SECRETS })
}

/** The accounts in a file, by id. */
interface Balances {
  readonly tokens: ReadonlyMap<number, TokenBalance>
  readonly users: ReadonlyMap<number, UserBalance>
  /** The sum of a token's open holds. */
  readonly held: ReadonlyMap<number, number>
}

/** One store for all accounts, and the ledger of the current run. */
class LedgerRun {
  readonly #folder: string
  store: Store
  ledger: Ledger
  crashes = 0

  private constructor(folder: string, store: Store) {
    this.#folder = folder
    this.store = store
    this.ledger = new Ledger(store, 'run 0')
  }

  static async open(): Promise<LedgerRun> {
    const folder = temporaryFolder()
    return new LedgerRun(folder, await storeIn(folder))
  }

  /** The state in the file, read beside the store. */
  balances(): Balances {
    const database = databaseOf(this.#folder)
    const held = new Map<number, number>()
    for (const { token_id: id, amount } of database.openHolds()) held.set(id, (held.get(id) ?? 0) + amount)
    return {
      tokens: new Map(database.tokens().map((row) => [row.id, row])),
      users: new Map(database.users().map((row) => [row.id, row])),
      held,
    }
  }

  /** Starts another run, which only knows the file. */
  async crash(): Promise<void> {
    await this.store.close()
    this.store = await storeIn(this.#folder)
    this.crashes += 1
    this.ledger = new Ledger(this.store, `run ${this.crashes}`)
    await this.ledger.recover()
  }
}

/** A user and two tokens, their model, and the sequence that runs on them. */
class Slot {
  readonly #bench: LedgerRun
  readonly #name: string
  #userId = 0
  readonly #tokenIds: [number, number] = [0, 0]
  readonly #deleted: [boolean, boolean] = [false, false]
  readonly #model = new LedgerModel(TOKEN_QUOTA, USER_QUOTA)
  #sequence: readonly Command[] = []
  #beganWith = ''
  #next = 0
  #made = 0
  #open = new Map<string, OpenHold>()
  /** Changes that may not be durable yet. */
  #changes: Promise<unknown>[] = []
  violation: string | undefined
  commands = 0
  holds = 0
  refusals = 0
  written = 0
  unwritten = 0

  constructor(bench: LedgerRun, index: number) {
    this.#bench = bench
    this.#name = `slot ${index}`
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
      this.#model.remain[token] = TOKEN_QUOTA
      this.#model.used[token] = 0
    }
    this.#sequence = sequence
    this.#next = 0
    const { remain, user } = this.#model
    this.#beganWith = JSON.stringify({ remain, user })
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

  async #run(command: Command): Promise<void> {
    const { ledger, store } = this.#bench
    const model = this.#model
    const [id, hold] =
      'nth' in command ? ([...this.#open][command.nth % Math.max(this.#open.size, 1)] ?? []) : []
    switch (command.do) {
      case 'hold':
        return this.#hold(command.token, command.amount)
      case 'extend': {
        const sum = id === undefined ? undefined : model.open.get(id)
        if (!hold || !sum) return
        await this.settled()
        const fits = command.by <= model.free(sum.token as 0 | 1)
        if (hold.grow(command.by) !== fits) this.#broken(`${id} was ${fits ? 'not ' : ''}extended`)
        if (fits) sum.amount += command.by
        return
      }
      case 'mark':
        if (id === undefined) return
        hold?.markProgress(command.by)
        return model.mark(id, command.by)
      case 'show':
        return void (await hold?.whenDurable())
      case 'settle':
      case 'void': {
        if (id === undefined || !hold) return
        const quota = command.do === 'settle' ? command.by : 0
        this.#open.delete(id)
        model.settle(id, quota)
        this.#changes.push(hold.settle(settlementOf(quota)))
        return
      }
      case 'grant': {
        model.user += command.by
        const quota = { mode: 'add', value: command.by, maxQuota: MAX_QUOTA } as const
        return void this.#changes.push(ledger.changeUser({ userId: this.#userId, quota }))
      }
      case 'set': {
        if (!this.#deleted[command.token]) model.remain[command.token] = command.remain
        const tokenId = this.#tokenIds[command.token]
        const fields = { remain_quota: command.remain }
        const change = { tokenId, userId: this.#userId, fields, maxQuota: MAX_QUOTA, nowMs: 0 }
        return void this.#changes.push(ledger.changeToken(change))
      }
      case 'delete': {
        this.#deleted[command.token] = true
        const tokenIds = [this.#tokenIds[command.token]]
        const deletion = { userId: this.#userId, tokenIds, nowSeconds: 1 }
        return void this.#changes.push(store.write('deleteTokens', deletion))
      }
    }
  }

  async #hold(token: 0 | 1, amount: number): Promise<void> {
    // The key of a deleted token is refused before the ledger.
    if (this.#deleted[token]) return
    const { ledger } = this.#bench
    await this.settled()
    const account = await accountOf(ledger, this.#tokenIds[token])
    const fits = amount <= this.#model.free(token)
    const id = `${this.#name} ${this.#made++}`
    try {
      this.#open.set(id, ledger.admit(account, amount, factsOf(id)))
      this.#model.open.set(id, { token, amount, progress: 0 })
      this.holds += 1
      if (!fits) this.#broken(`${amount} were held, and not so much was left`)
    } catch {
      this.refusals += 1
      if (fits) this.#broken(`${amount} were not held, and so much was left`)
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
    const isWritten = (id: string): boolean => this.#open.get(id)?.isDurable === true
    const written = [...this.#open.keys()].filter(isWritten).length
    this.written += written
    this.unwritten += this.#open.size - written
    this.#model.crash(isWritten)
    this.#open = new Map()
  }

  /** Sum of the token's holds that the file has. */
  #heldInFile(token: 0 | 1): number {
    const sums = [...this.#model.open].filter(
      ([id, sum]) => sum.token === token && this.#open.get(id)?.isDurable === true,
    )
    return sums.reduce((total, [, { amount }]) => total + amount, 0)
  }

  async compare(when: string, balances: Balances): Promise<void> {
    const heldInFile = [this.#heldInFile(0), this.#heldInFile(1)] as const
    const user = balances.users.get(this.#userId)
    for (const token of [0, 1] as const) {
      const id = this.#tokenIds[token]
      const account = await accountOf(this.#bench.ledger, id)
      const { remain, used, user: userRemain, userUsed } = this.#model
      const [held, userHeld] = [this.#model.held(token), this.#model.held()]
      const row = balances.tokens.get(id)
      this.#same(
        `${when}, in the file`,
        [row?.remain_quota, row?.used_quota, user?.quota, user?.used_quota, balances.held.get(id) ?? 0],
        [remain[token], used[token], userRemain, userUsed, heldInFile[token]],
      )
      this.#same(
        `${when}, in memory`,
        [account.token.remain, account.token.held, account.user.remain, account.user.held],
        [remain[token], held, userRemain, userHeld],
      )
    }
  }

  #same(where: string, found: readonly (number | undefined)[], expected: readonly number[]): void {
    if (found.join() !== expected.join()) this.#broken(`${where}: ${found.join()}, not ${expected.join()}`)
  }

  #broken(what: string): void {
    const commands = this.#sequence.map((command) => JSON.stringify(command)).join('\n')
    this.violation ??= `${what}, at command ${this.#next} on ${this.#beganWith} of\n${commands}`
  }
}
