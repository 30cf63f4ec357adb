import { GatewayError } from '../../src/errors.ts'
import { randomFrom } from '../equipment/random.ts'
import type { Coverage } from './coverage.ts'
import { mutated, type Stock } from './mutations.ts'
import { shortened } from './shortened.ts'
import type { Target } from './target.ts'

/** Inputs that run between two looks at what they reached: a look takes as long as hundreds of runs. */
const BATCH = 64
/** Ways in which inputs may be taken; a target that tells more of them tells too much. */
const MOST_WAYS = 100
const MOST_BYTES = 4_096
/** Runs that go into making an input shorter that is kept, and one that broke a promise. */
const TRIES_FOR_KEPT = 40
const TRIES_FOR_FAILURE = 600

/** A campaign against one target. */
export interface Campaign {
  readonly target: Target
  readonly coverage: Coverage
  /** Inputs that were kept before. */
  readonly corpus: readonly Buffer[]
  readonly seed: number
  /** Whether to go on after so many inputs. */
  readonly goOn: (inputs: number) => boolean
  /** Called before each run, for who watches how long it takes. */
  readonly onRun?: (input: Buffer) => void
  /**
   * Whether what it reaches decides what is kept; without it, inputs are bred from those of the beginning
   * alone.
   */
  readonly isGuided?: boolean
}

/** An input that broke a promise. */
export interface Failure {
  readonly input: Buffer
  readonly error: unknown
}

/** What became of a campaign. */
export interface Outcome {
  readonly inputs: number
  /** All inputs that reached something new, or were taken in a new way, those of the beginning included. */
  readonly kept: readonly Buffer[]
  readonly failure: Failure | undefined
}

/** Breeds inputs from those that reached something new, until one breaks a promise or it is told to stop. */
export async function fuzz(campaign: Campaign): Promise<Outcome> {
  return await new Fuzzer(campaign).run()
}

/** Thrown to end a campaign. */
class Broken extends Error {
  readonly input: Buffer

  constructor(input: Buffer, cause: unknown) {
    super('an input broke a promise', { cause })
    this.input = input
  }
}

class Fuzzer {
  readonly #campaign: Campaign
  readonly #random: () => number
  readonly #pool: Buffer[] = []
  readonly #stock: Stock
  readonly #ways = new Set<string>()
  #inputs = 0

  constructor(campaign: Campaign) {
    this.#campaign = campaign
    this.#random = randomFrom(campaign.seed)
    const { tokens, most = MOST_BYTES } = campaign.target
    this.#stock = { pool: this.#pool, tokens: tokens.map((token) => Buffer.from(token, 'utf8')), most }
  }

  async run(): Promise<Outcome> {
    const { target, corpus, coverage, goOn, isGuided = true } = this.#campaign
    try {
      const first = [...corpus, ...target.seeds.map((seed) => Buffer.from(seed as string))]
      coverage.take()
      for (const input of first) await this.#try(input)
      if (this.#pool.length === 0) this.#pool.push(Buffer.alloc(0))
      while (goOn(this.#inputs)) {
        const batch = Array.from({ length: BATCH }, () => this.#bred())
        if (isGuided) await this.#explore(batch)
        else for (const input of batch) await this.#take(input)
      }
    } catch (error) {
      if (!(error instanceof Broken)) throw error
      const failure = await this.#shortest(error)
      return { inputs: this.#inputs, kept: this.#pool, failure }
    }
    return { inputs: this.#inputs, kept: this.#pool, failure: undefined }
  }

  #bred(): Buffer {
    const { pool } = this.#stock
    const upTo = (end: number): number => Math.floor(this.#random() * end)
    // What was found lately leads further more often than what is known for long.
    const one = upTo(3) === 0 ? Math.max(0, pool.length - 1 - upTo(8)) : upTo(pool.length)
    const [some, other] = [pool[one] as Buffer, pool[upTo(pool.length)] as Buffer]
    // Of a short one more of the changes matter.
    const parent = upTo(2) === 0 && other.length < some.length ? other : some
    return mutated(parent, this.#stock, this.#random)
  }

  /** Runs an input by itself, and keeps it if it brought anything new. */
  async #try(input: Buffer): Promise<void> {
    const { coverage } = this.#campaign
    const isTakenAnew = await this.#take(input)
    const reached = coverage.take()
    if (!isTakenAnew && !coverage.isNew(reached)) return
    coverage.add(reached)
    this.#pool.push(input)
  }

  /** Runs inputs together; only where they brought something new are they looked at one by one. */
  async #explore(batch: readonly Buffer[]): Promise<void> {
    const { coverage } = this.#campaign
    for (const input of batch) if (await this.#take(input)) this.#pool.push(input)
    const reached = coverage.take()
    if (!coverage.isNew(reached)) return
    await this.#divide(batch)
    // What happened the first time and never again (a cache that was filled) is not asked for any more.
    coverage.add(reached)
  }

  async #divide(batch: readonly Buffer[]): Promise<void> {
    const { coverage } = this.#campaign
    for (const input of batch) await this.#take(input)
    const reached = coverage.take()
    if (!coverage.isNew(reached)) return
    if (batch.length > 1) {
      const middle = batch.length >> 1
      await this.#divide(batch.slice(0, middle))
      await this.#divide(batch.slice(middle))
      return
    }
    for (const input of batch) {
      const short = await shortened(input, TRIES_FOR_KEPT, async (shorter) => {
        await this.#take(shorter)
        return coverage.isNew(coverage.take())
      })
      this.#pool.push(short)
    }
    coverage.add(reached)
  }

  /** Runs an input; tells whether it was taken in a way that none was taken in before. */
  async #take(input: Buffer): Promise<boolean> {
    this.#inputs += 1
    this.#campaign.onRun?.(input)
    let way: unknown
    try {
      way = this.#campaign.target.run(input, randomFrom(hashOf(input)))
      if (way instanceof Promise) way = await way
    } catch (error) {
      if (!(error instanceof GatewayError)) throw new Broken(input, error)
      way = error.code
    }
    if (typeof way !== 'string' || this.#ways.has(way) || this.#ways.size === MOST_WAYS) return false
    this.#ways.add(way)
    return true
  }

  async #shortest({ input, cause }: Broken): Promise<Failure> {
    let error: unknown = cause
    const shortest = await shortened(input, TRIES_FOR_FAILURE, async (shorter) => {
      try {
        await this.#take(shorter)
        return false
      } catch (found) {
        if (!(found instanceof Broken) || kindOf(found.cause) !== kindOf(cause)) return false
        error = found.cause
        return true
      }
    })
    return { input: shortest, error }
  }
}

/** What an error says, whatever the numbers and texts in it. */
function kindOf(error: unknown): string {
  return String(error).split(/["\d]/)[0] ?? ''
}

/** FNV-1a. */
function hashOf(bytes: Buffer): number {
  let hash = 0x811c9dc5
  for (const byte of bytes) hash = Math.imul(hash ^ byte, 0x01000193)
  return hash >>> 0
}
