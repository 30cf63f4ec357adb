import type { OpenedLedger } from '../bootstrap/opened-ledger.ts'
import { BackgroundCalls, type BackgroundParts } from '../relay/state/background-calls.ts'
import { ResponseStore } from '../relay/state/response-store.ts'
import { type Secrets, tagOf } from '../store/secrets.ts'

/** Responses that clients may refer to, and the calls of those that are still being made. */
interface OpenedResponses {
  readonly responses: ResponseStore
  readonly background: BackgroundCalls
}

/** Opens the store of responses, and takes up the calls that an earlier run left in the background. */
export async function openResponses(
  { store, announcements }: Pick<OpenedLedger, 'store' | 'announcements'>,
  secrets: Secrets,
  parts: Omit<BackgroundParts, 'responses' | 'isShared'>,
): Promise<OpenedResponses> {
  const responses = new ResponseStore({
    rows: store,
    tag: (purpose, text) => tagOf(secrets, purpose, text),
    onLost: () => parts.metrics.lostResponses.add(1),
  })
  const background = new BackgroundCalls({ ...parts, responses, isShared: announcements !== undefined })
  await background.takeUp()
  return { responses, background }
}
