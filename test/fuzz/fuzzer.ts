import { GatewayError } from '../../src/errors.ts'
import { randomFrom } from '../equipment/random.ts'
import type { Coverage } from './coverage.ts'
import { mutated, type MutationSources } from './mutations.ts'
import { minimizedInput } from './minimize-input.ts'
import type { Target } from './target.ts'

/** Inputs that run between two looks at what they reached: a look takes as long as hundreds of runs. */
const BATCH = 64
/** Ways in which inputs may be taken; a target that tells more of them tells too much. */
const MAX_BEHAVIOURS = 100
const MAX_BYTES = 4_096
/** Runs that go into making an input shorter that is kept, and one that broke a promise. */
const MAX_TRIES_FOR_KEPT = 40
const MAX_TRIES_FOR_FAILURE = 600

/** A campaign against one target. */
export interface Campaign {
  readonly target: Target
  readonly coverage: Coverage
  /** Inputs that were kept before. */
  readonly corpus: readonly Buffer[]
  readonly seed: number
  /** Whether to go on after so many inputs. */
  readonly shouldContinue: (inputs: number) => boolean
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
export interface CampaignResult {
  readonly inputs: number
  /** All inputs that reached something new, or were taken in a new way, those of the beginning included. */
  readonly corpus: readonly Buffer[]
  readonly failure: Failure | undefined
}

/** Breeds inputs from those that reached something new, until one breaks a promise or it is told to stop. */
export async function fuzz(campaign: Campaign): Promise<CampaignResult> {
  return await new Fuzzer(campaign).run()
}

/** Thrown to end a campaign. */
class BrokenPromise extends Error {
  readonly input: Buffer

  constructor(input: Buffer, cause: unknown) {
    super('an input broke a promise', { cause })
    this.input = input
  }
}

class Fuzzer {
  readonly #campaign: Campaign
  readonly #random: () => number
  readonly #corpus: Buffer[] = []
  readonly #sources: MutationSources
  readonly #behaviours = new Set<string>()
  #inputs = 0

  constructor(campaign: Campaign) {
    this.#campaign = campaign
    this.#random = randomFrom(campaign.seed)
    const { tokens, maxBytes: most = MAX_BYTES } = campaign.target
    this.#sources = { corpus: this.#corpus, tokens: tokens.map((token) => Buffer.from(token, 'utf8')), maxBytes: most }
  }

  async run(): Promise<CampaignResult> {
    const { target, corpus, coverage, shouldContinue: goOn, isGuided = true } = this.#campaign
    try {
      const first = [...corpus, ...target.seeds.map((seed) => Buffer.from(seed as string))]
      coverage.take()
      for (const input of first) await this.#runSeed(input)
      if (this.#corpus.length === 0) this.#corpus.push(Buffer.alloc(0))
      while (goOn(this.#inputs)) {
        const batch = Array.from({ length: BATCH }, () => this.#mutant())
        if (isGuided) await this.#runBatch(batch)
        else for (const input of batch) await this.#runInput(input)
      }
    } catch (error) {
      if (!(error instanceof BrokenPromise)) throw error
      const failure = await this.#minimize(error)
      return { inputs: this.#inputs, corpus: this.#corpus, failure }
    }
    return { inputs: this.#inputs, corpus: this.#corpus, failure: undefined }
  }

  #mutant(): Buffer {
    const { corpus: pool } = this.#sources
    const upTo = (end: number): number => Math.floor(this.#random() * end)
    // What was found lately leads further more often than what is known for long.
    const one = upTo(3) === 0 ? Math.max(0, pool.length - 1 - upTo(8)) : upTo(pool.length)
    const [some, other] = [pool[one] as Buffer, pool[upTo(pool.length)] as Buffer]
    // Of a short one more of the changes matter.
    const parent = upTo(2) === 0 && other.length < some.length ? other : some
    return mutated(parent, this.#sources, this.#random)
  }

  /** Runs an input by itself, and keeps it if it brought anything new. */
  async #runSeed(input: Buffer): Promise<void> {
    const { coverage } = this.#campaign
    const isTakenAnew = await this.#runInput(input)
    const reached = coverage.take()
    if (!isTakenAnew && !coverage.isNew(reached)) return
    coverage.add(reached)
    this.#corpus.push(input)
  }

  /** Runs inputs together; only where they brought something new are they looked at one by one. */
  async #runBatch(batch: readonly Buffer[]): Promise<void> {
    const { coverage } = this.#campaign
    for (const input of batch) if (await this.#runInput(input)) this.#corpus.push(input)
    const reached = coverage.take()
    if (!coverage.isNew(reached)) return
    await this.#bisect(batch)
    // What happened the first time and never again (a cache that was filled) is not asked for any more.
    coverage.add(reached)
  }

  async #bisect(batch: readonly Buffer[]): Promise<void> {
    const { coverage } = this.#campaign
    for (const input of batch) await this.#runInput(input)
    const reached = coverage.take()
    if (!coverage.isNew(reached)) return
    if (batch.length > 1) {
      const middle = batch.length >> 1
      await this.#bisect(batch.slice(0, middle))
      await this.#bisect(batch.slice(middle))
      return
    }
    for (const input of batch) {
      const short = await minimizedInput(input, MAX_TRIES_FOR_KEPT, async (shorter) => {
        await this.#runInput(shorter)
        return coverage.isNew(coverage.take())
      })
      this.#corpus.push(short)
    }
    coverage.add(reached)
  }

  /** Runs an input; tells whether it was taken in a way that none was taken in before. */
  async #runInput(input: Buffer): Promise<boolean> {
    this.#inputs += 1
    this.#campaign.onRun?.(input)
    let way: unknown
    try {
      way = this.#campaign.target.run(input, randomFrom(hashOf(input)))
      if (way instanceof Promise) way = await way
    } catch (error) {
      if (!(error instanceof GatewayError)) throw new BrokenPromise(input, error)
      way = error.code
    }
    if (typeof way !== 'string' || this.#behaviours.has(way) || this.#behaviours.size === MAX_BEHAVIOURS) return false
    this.#behaviours.add(way)
    return true
  }

  async #minimize({ input, cause }: BrokenPromise): Promise<Failure> {
    let error: unknown = cause
    const shortest = await minimizedInput(input, MAX_TRIES_FOR_FAILURE, async (shorter) => {
      try {
        await this.#runInput(shorter)
        return false
      } catch (found) {
        if (!(found instanceof BrokenPromise) || kindOf(found.cause) !== kindOf(cause)) return false
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
