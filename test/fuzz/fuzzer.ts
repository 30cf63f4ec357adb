import { asGatewayError } from '../../src/errors.ts'
import { randomFrom } from '../fixtures/random.ts'
import type { Coverage } from './coverage.ts'
import { mutated, type MutationSources } from './mutations.ts'
import { minimizedInput } from './minimize-input.ts'
import { runTarget, type Target } from './target.ts'

/** Inputs per measurement of the coverage, which takes as long as hundreds of runs. */
const BATCH = 64
/**
 * The maximum number of behaviours that count as new; a target that returns more of them distinguishes too
 * much.
 */
const MAX_BEHAVIOURS = 100
const MAX_BYTES = 4_096
/** The number of runs for minimizing an input of the corpus, and one that broke a promise. */
const MAX_TRIES_FOR_KEPT = 40
const MAX_TRIES_FOR_FAILURE = 600

/** Settings of a fuzzing campaign against one target. */
export interface Campaign {
  readonly target: Target
  readonly coverage: Pick<Coverage, 'take' | 'isNew' | 'add'>
  /** Inputs of earlier campaigns, run first. */
  readonly corpus: readonly Buffer[]
  readonly seed: number
  /** Whether to continue after this number of inputs. */
  readonly shouldContinue: (inputs: number) => boolean
  /** Called before each run, for the watchdog. */
  readonly onRun?: (input: Buffer) => void
  /** Whether coverage decides which inputs are added to the corpus. True by default. */
  readonly isGuided?: boolean
}

/** An input that broke a promise. */
export interface Failure {
  readonly input: Buffer
  readonly error: unknown
}

/** Result of a campaign. */
export interface CampaignResult {
  readonly inputs: number
  /** Seeds and mutants that reached new code or showed a new behaviour. */
  readonly corpus: readonly Buffer[]
  readonly failure: Failure | undefined
}

/** Mutates inputs that reached new code, until one breaks a promise or `shouldContinue` returns false. */
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
    this.#sources = {
      corpus: this.#corpus,
      tokens: tokens.map((token) => Buffer.from(token, 'utf8')),
      maxBytes: most,
    }
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
    // Recent finds lead to new code more often than old ones.
    const one = upTo(3) === 0 ? Math.max(0, pool.length - 1 - upTo(8)) : upTo(pool.length)
    const [candidate, other] = [pool[one] as Buffer, pool[upTo(pool.length)] as Buffer]
    // A mutation of a short input is more likely to matter.
    const parent = upTo(2) === 0 && other.length < candidate.length ? other : candidate
    return mutated(parent, this.#sources, this.#random)
  }

  /** Runs one input, and adds it to the corpus if its coverage or behaviour is new. */
  async #runSeed(input: Buffer): Promise<void> {
    const { coverage } = this.#campaign
    const isNewBehaviour = await this.#runInput(input)
    const reached = coverage.take()
    if (!isNewBehaviour && !coverage.isNew(reached)) return
    coverage.add(reached)
    this.#corpus.push(input)
  }

  /** Runs inputs together, and searches for the ones that count only if the batch reached new code. */
  async #runBatch(batch: readonly Buffer[]): Promise<void> {
    const { coverage } = this.#campaign
    for (const input of batch) if (await this.#runInput(input)) this.#corpus.push(input)
    const reached = coverage.take()
    if (!coverage.isNew(reached)) return
    await this.#bisect(batch)
    // Code that ran only once (for example to fill a cache) counts as reached, too.
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

  /** Runs an input; resolves to whether its behaviour is new. */
  async #runInput(input: Buffer): Promise<boolean> {
    this.#inputs += 1
    this.#campaign.onRun?.(input)
    let behaviour: unknown
    try {
      behaviour = runTarget(this.#campaign.target, input)
      if (behaviour instanceof Promise) behaviour = await behaviour
    } catch (error) {
      const known = asGatewayError(error)
      if (!known) throw new BrokenPromise(input, error)
      behaviour = known.code
    }
    if (
      typeof behaviour !== 'string' ||
      this.#behaviours.has(behaviour) ||
      this.#behaviours.size === MAX_BEHAVIOURS
    )
      return false
    this.#behaviours.add(behaviour)
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

/** An error's message up to its first number or quoted text. */
function kindOf(error: unknown): string {
  return String(error).split(/["\d]/)[0] ?? ''
}
