import type { Books, Observation } from './auditor.ts'

/** An upstream's record of one call. */
export interface Sent {
  /** The client's own id of the request. */
  readonly call: string
  /** The cost in quota units of the prompt and of the output generated so far. */
  readonly cost: number
}

/** Accepted reasons for charging less than an upstream generated; anything else is a broken promise. */
export type Exception =
  /** A repeated request after a broken connection: only the delivered attempt is charged. */
  | 'the attempt was not delivered'
  /** Output since the last progress mark, which is lost when the node is killed. */
  | 'the node was killed'
  /** Output that the upstream had sent, but the gateway had not received at that moment. */
  | 'the client left'
  | 'nothing reached the client'

/** The charged part of the upstreams' work, in quota units. */
export interface Deliveries {
  /** A sentence for each call that was charged too little without an accepted reason. */
  readonly broken: readonly string[]
  readonly sent: number
  /** Sum of all usage rows. */
  readonly charged: number
  /** Generated and uncharged quota units, by accepted reason. */
  readonly excepted: Readonly<Partial<Record<Exception, number>>>
}

/**
 * Compares the upstreams' records with the charges: every call is charged at least its cost, or has an
 * accepted reason. The part that a client saw is charged in any case, except output that a killed node had
 * not marked yet.
 */
export function auditDeliveries(
  books: Books,
  observations: readonly Observation[],
  sent: readonly Sent[],
): Deliveries {
  const rows = new Map(books.usage.map((row) => [row.id, row]))
  const byCall = new Map(observations.map((observation) => [observation.call, observation]))
  const rowOf = (observation: Observation | undefined) =>
    observation?.id === undefined ? undefined : rows.get(observation.id)
  const broken: string[] = []
  const excepted: Partial<Record<Exception, number>> = {}
  const except = (exception: Exception, quota: number): void => {
    if (quota > 0) excepted[exception] = (excepted[exception] ?? 0) + quota
  }

  const costs = new Map<string, number>()
  for (const { call, cost } of sent) {
    const other = costs.get(call)
    if (other !== undefined) except('the attempt was not delivered', Math.min(cost, other))
    costs.set(call, Math.max(cost, other ?? 0))
  }
  for (const [call, cost] of costs) {
    const observation = byCall.get(call)
    const row = rowOf(observation)
    const quota = row?.quota ?? 0
    if (quota >= cost) continue
    const exception = exceptionOf(observation, row?.reason)
    if (exception) except(exception, cost - quota)
    else
      broken.push(`${observation?.id ?? call}: the upstream sent what costs ${cost}, charged were ${quota}`)
  }
  for (const observation of observations) {
    const { complete, sawContent, seenCost } = observation
    const row = rowOf(observation)
    if (complete || !row || row.reason === 'crash' || row.quota >= seenCost) continue
    if (sawContent || row.reason === 'client_gone')
      broken.push(
        `${row.id} was charged ${row.quota} (${row.reason}), and its client saw what costs ${seenCost}`,
      )
  }

  const total = sumOf(sent.map(({ cost }) => cost))
  const charged = sumOf(books.usage.map(({ quota }) => quota))
  const unpaid = sumOf(Object.values(excepted))
  if (charged < total - unpaid)
    broken.push(`the upstream sent what costs ${total}, charged were ${charged}, and ${unpaid} have a reason`)
  return { broken, sent: total, charged, excepted }
}

function exceptionOf(
  observation: Observation | undefined,
  reason: string | undefined,
): Exception | undefined {
  if (reason === 'crash') return 'the node was killed'
  if (reason === 'client_gone') return 'the client left'
  const isUncharged = reason === undefined || reason === 'failed'
  return isUncharged && !observation?.sawContent ? 'nothing reached the client' : undefined
}

function sumOf(numbers: readonly number[]): number {
  return numbers.reduce((sum, each) => sum + each, 0)
}
