import { type Fields, asFields, asList, asString } from '../fields.ts'
import { malformed } from '../refusal.ts'

/**
 * How batches that are made later behave. Members have the names of `POST /simulate` and, after `batch_`, of a
 * `simulate(…)` directive in a line; see the README.
 */
export interface Behaviour {
  /** Milliseconds in each phase. */
  readonly validating_ms: number
  readonly running_ms: number
  readonly finalizing_ms: number
  readonly cancelling_ms: number
  /** Milliseconds for which Azure checks an uploaded file. */
  readonly pending_ms: number
  readonly end: string
  /** Code of the error with which a batch fails. */
  readonly code: string
  /** Number of lines that are done when a batch expires or is cancelled; below 0: as many as the time allowed. */
  readonly done: number
  /** Whether results are in another order than the lines. */
  readonly shuffled: boolean
  /** Number of results that are in the file twice, that have ids of no line, and that are not in it. */
  readonly duplicates: number
  readonly unknown: number
  readonly missing: number
  /** Maximum of tokens in the unfinished batches of an account. */
  readonly enqueued_tokens: number
}

/** The steps of a client at which faults are played. */
const STEPS = [
  'upload',
  'file',
  'files',
  'content',
  'delete_file',
  'create',
  'get',
  'list',
  'cancel',
  'delete',
] as const
export type Step = (typeof STEPS)[number]

/** What happens to a request, once or several times. */
export interface StepFault {
  readonly step: Step
  /** The request is refused with this status, before anything is done. */
  readonly status: number | undefined
  /** Seconds in the header `retry-after` of the refusal. */
  readonly retryAfter: number | undefined
  /** The request is carried out, but the connection breaks before the answer. */
  readonly isLost: boolean
  /** Number of results after which the connection breaks. */
  readonly broken: number | undefined
  /** The batch is made, and fails with this code. */
  readonly fails: string | undefined
}

interface QueuedFault extends StepFault {
  skip: number
  times: number
}

/** The behaviour if nothing else is set, without the times. */
export const USUAL_OUTCOME = {
  end: 'completed',
  code: 'server_error',
  done: -1,
  shuffled: false,
  duplicates: 0,
  unknown: 0,
  missing: 0,
  enqueued_tokens: 1e9,
} as const satisfies Partial<Behaviour>

const ENDS: ReadonlySet<string> = new Set(['completed', 'failed', 'expired'])

/** What `POST /simulate` sets: the behaviour of later batches, and faults of later requests. */
export class BatchControl {
  readonly #usual: Behaviour
  #behaviour: Behaviour
  #faults: QueuedFault[] = []
  readonly #requests = new Map<Step, number>()

  constructor(usual: Behaviour) {
    this.#usual = usual
    this.#behaviour = usual
  }

  get behaviour(): Behaviour {
    return this.#behaviour
  }

  /** The behaviour, the faults that are still to come, and the number of requests so far, by step. */
  get state(): Fields {
    return {
      behaviour: this.#behaviour,
      faults: this.#faults,
      requests: Object.fromEntries(this.#requests),
    }
  }

  /** Throws `Refusal` if a member is unknown, and changes nothing then. */
  set({ reset, behaviour, faults, ...others }: Fields): void {
    const [other] = Object.keys(others)
    if (other !== undefined) throw malformed(`${other}: expected reset, behaviour or faults`)
    const changed = withMembers(
      reset === true ? this.#usual : this.#behaviour,
      Object.entries(asFields(behaviour)),
    )
    const added = asList(faults).map((one) => faultIn(asFields(one)))
    this.#behaviour = changed
    this.#faults = [...(reset === true ? [] : this.#faults), ...added]
  }

  /** Counts a request, and returns the fault that it meets. */
  take(step: Step): StepFault | undefined {
    this.#requests.set(step, (this.#requests.get(step) ?? 0) + 1)
    const fault = this.#faults.find((one) => one.step === step)
    if (!fault) return undefined
    if (fault.skip > 0) {
      fault.skip -= 1
      return undefined
    }
    fault.times -= 1
    if (fault.times <= 0) this.#faults = this.#faults.filter((one) => one !== fault)
    return fault
  }
}

/** Changes members of a behaviour. Values may be the texts of a directive, where an empty one is true. */
export function withMembers(
  behaviour: Behaviour,
  members: readonly (readonly [name: string, value: unknown])[],
): Behaviour {
  const known: Fields = { ...behaviour }
  const changes = members.map(([name, value]): [string, unknown] => {
    const usual = known[name]
    if (typeof usual === 'boolean') return [name, value === true || value === '' || value === 'true']
    if (typeof usual === 'string') return [name, asString(value)]
    const number = Number(value)
    if (typeof usual !== 'number' || !Number.isFinite(number))
      throw malformed(`${name}: not a behaviour of batches, or not a number`)
    return [name, number]
  })
  const changed = { ...behaviour, ...Object.fromEntries(changes) }
  if (!ENDS.has(changed.end)) throw malformed(`end: expected ${[...ENDS].join(', ')}`)
  return changed
}

function faultIn({ step, status, retry_after, lost, broken, fails, skip, times }: Fields): QueuedFault {
  const known = STEPS.find((one) => one === step)
  if (!known) throw malformed(`faults: expected the step ${STEPS.join(', ')}`)
  return {
    step: known,
    status: typeof status === 'number' ? status : undefined,
    retryAfter: typeof retry_after === 'number' ? retry_after : undefined,
    isLost: lost === true,
    broken: typeof broken === 'number' ? broken : undefined,
    fails: typeof fails === 'string' ? fails : undefined,
    skip: typeof skip === 'number' ? skip : 0,
    times: typeof times === 'number' ? times : 1,
  }
}
