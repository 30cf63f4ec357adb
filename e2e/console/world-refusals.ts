import type { RefusalCount } from '../../src/domain/records/refusal.ts'
import { type RefusedCall, REFUSED_CALL_RETENTION_MS } from '../../src/domain/refused-call.ts'
import { ERRORS, type ErrorCode, type RefusedLimit } from '../../src/errors.ts'
import type { Store } from '../../src/store/store.ts'
import { SLOT_MS } from '../../src/store/sum-kinds.ts'
import { callId, type MadeKey, modelsOf, pick, type Random, startTimes } from './world-calls.ts'

interface Refusal {
  readonly weight: number
  readonly code: ErrorCode
  readonly message: string
  readonly kind?: RefusedLimit['kind']
  /** Whose calls are refused so; undefined for callers without a valid key. */
  readonly of?: (made: MadeKey) => boolean
}

const REFUSALS: readonly Refusal[] = [
  { weight: 5, code: 'invalid_api_key', message: 'this API key is unknown' },
  {
    weight: 8,
    code: 'rate_limited',
    message: 'too many requests: 60 of 60 in 60 seconds were used by this key',
    kind: 'requests',
    of: ({ key }) => key.weight > 10,
  },
  {
    weight: 5,
    code: 'budget_exceeded',
    message: 'the budget of this key is not enough for this request',
    kind: 'budget',
    of: ({ key }) => key.budget?.used === 1,
  },
  {
    weight: 3,
    code: 'insufficient_quota',
    message: 'the quota of the user is not enough for this request',
    kind: 'quota',
    of: ({ user }) => user.state === 'poor',
  },
  {
    weight: 3,
    code: 'model_not_allowed',
    message: 'this key may not use the model "gpt-5.1"',
    of: ({ key }) => key.models !== undefined && !key.models.includes('gpt-5.1'),
  },
  {
    weight: 2,
    code: 'token_disabled',
    message: 'this API key is disabled',
    of: ({ key }) => key.state === 'disabled',
  },
]

/** Adds calls that were refused before they began: counters of all, and rows of those that are kept. */
export async function addRefusedCalls(
  store: Store,
  {
    keys,
    nowMs,
    random,
    calls,
  }: {
    readonly keys: readonly MadeKey[]
    readonly nowMs: number
    readonly random: Random
    readonly calls: number
  },
): Promise<void> {
  const counts = new Map<string, RefusalCount>()
  const rows: RefusedCall[] = []
  for (const atMs of startTimes(calls, nowMs, random)) {
    const refusal = pick(REFUSALS, random)
    const made = refusal.of && pick(keys.filter(refusal.of), random)
    const own = { token_id: made?.id ?? 0, user_id: made?.userId ?? 0 }
    const slot = Math.floor(atMs / SLOT_MS)
    const name = `${slot} ${refusal.code} ${own.token_id}`
    counts.set(name, { slot, code: refusal.code, ...own, calls: (counts.get(name)?.calls ?? 0) + 1 })
    if (nowMs - atMs < REFUSED_CALL_RETENTION_MS) rows.push(rowOf(refusal, made, atMs, random))
  }
  await store.write('addRefusals', { counts: [...counts.values()] })
  await store.write('addRefusedCalls', { calls: rows, maxRows: 100_000 })
}

function rowOf(
  { code, message, kind }: Refusal,
  made: MadeKey | undefined,
  atMs: number,
  random: Random,
): RefusedCall {
  const model = code === 'model_not_allowed' ? 'gpt-5.1' : pick(modelsOf(made?.key.models), random).name
  const isOfUser = kind === 'quota'
  return {
    id: callId(atMs, random),
    refused_ms: atMs,
    user_id: made?.userId ?? 0,
    token_id: made?.id ?? 0,
    model,
    group: made?.user.group ?? '',
    kind: 'chat',
    status: ERRORS[code].status,
    type: ERRORS[code].type,
    code,
    message,
    retry_after: kind === 'requests' ? 12 : null,
    limit:
      kind && made
        ? {
            subject: isOfUser ? 'user' : 'token',
            id: isOfUser ? made.userId : made.id,
            name: null,
            kind,
            spent: null,
            held: null,
            left: kind === 'requests' ? null : 0,
            needed: kind === 'requests' ? null : 21_500,
            resets_at: null,
          }
        : null,
  }
}
