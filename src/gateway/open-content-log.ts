import { join } from 'node:path'
import type { Environment } from '../config/environment.ts'
import { ContentLog, type ContentLogServices } from '../content/content-log.ts'
import { sqlitePath } from '../domain/database-url.ts'
import type { FreeSpaceMonitor } from '../store/free-space-monitor.ts'
import type { Store } from '../store/store.ts'
import type { Secrets } from '../store/secrets.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { PrunePart } from './prune.ts'

/** Opens the content log. Its threads start when content is written or read; the one that reads, at once if there is any. */
export function openContentLog(
  { databaseUrl, dataDir, bucketKey }: Pick<Environment, 'databaseUrl' | 'dataDir' | 'bucketKey'>,
  secrets: Secrets,
  {
    metrics,
    warn = () => {},
    room,
    settings,
  }: Pick<ContentLogServices, 'settings'> &
    Partial<Pick<ContentLogServices, 'warn'>> & {
      readonly metrics?: Metrics
      /** Monitor of the free space of `dataDir`; undefined if the content is not there, or none is written. */
      readonly room?: Pick<FreeSpaceMonitor, 'hasRoomFor'> | undefined
    },
): ContentLog {
  const isEmbedded = sqlitePath(databaseUrl) !== undefined
  return new ContentLog({
    settings,
    warn,
    secrets,
    folder: isEmbedded ? join(dataDir, 'content') : undefined,
    databaseUrl: isEmbedded ? undefined : databaseUrl,
    bucketKey,
    hasRoom: () => room?.hasRoomFor('responses') ?? true,
    onDropped: (reason) => metrics?.add('contentDropped', 1, reason),
    nowMs: () => performance.now(),
  })
}

/** Creates the parts that remove expired content, and content of deleted users that could not be deleted together with them. */
export function contentPruneParts(
  content: Pick<ContentLog, 'prune' | 'users' | 'delete'>,
  store: Pick<Store, 'read'>,
): readonly PrunePart[] {
  return [async () => ({ deletedUsers: await deleteContentOfGone(content, store) }), () => content.prune()]
}

async function deleteContentOfGone(
  content: Pick<ContentLog, 'users' | 'delete'>,
  store: Pick<Store, 'read'>,
): Promise<number> {
  let deleted = 0
  for (const id of await content.users()) {
    if (await store.read('userById', id)) continue
    await content.delete({ userId: id, tokenId: undefined, fromMs: 0, toMs: Date.now() + 1 })
    deleted += 1
  }
  return deleted
}
