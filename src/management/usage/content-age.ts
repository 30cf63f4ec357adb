import type { ContentSummary } from '../../content/messages.ts'
import { contentKeepMs } from '../../domain/content-log.ts'
import type { AdministrationServices } from '../services.ts'

/** What is needed to tell whether content is past its retention. */
export type ContentAgeServices = Pick<AdministrationServices, 'store' | 'settings' | 'nowMs'>

/**
 * Those contents that are within the retention that the settings state now: it may be shorter than the one that was
 * stored with the content. `groupOf` returns the group that served a call; if it is unknown, what was stored counts.
 * `docs/content-log.md: For how long`.
 */
export async function contentsInTime(
  { store, settings, nowMs }: ContentAgeServices,
  contents: readonly ContentSummary[],
  groupOf: (id: string) => string | undefined,
): Promise<readonly ContentSummary[]> {
  const { contentLog, groups } = settings()
  const read = async <Found>(ids: readonly number[], one: (id: number) => Promise<Found>) =>
    new Map(await Promise.all([...new Set(ids)].map(async (id) => [id, await one(id)] as const)))
  const [users, tokens] = await Promise.all([
    read(
      contents.map(({ userId }) => userId),
      (id) => store.read('userById', id),
    ),
    read(
      contents.map(({ tokenId }) => tokenId),
      (tokenId) => store.read('tokenById', { tokenId }),
    ),
  ])
  const now = nowMs()
  return contents.filter(({ id, userId, tokenId, startedMs }) => {
    const name = groupOf(id)
    if (name === undefined) return true
    const group = groups.get(name)?.contentLog
    const user = users.get(userId) ?? undefined
    return startedMs + contentKeepMs(contentLog, group, user, tokens.get(tokenId) ?? undefined) > now
  })
}
