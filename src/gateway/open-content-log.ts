import { join } from 'node:path'
import type { Environment } from '../config/environment.ts'
import { ContentLog, type ContentLogServices } from '../content/content-log.ts'
import { sqlitePath } from '../domain/database-url.ts'
import type { Secrets } from '../store/secrets.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { OpenedLedger } from './open-ledger.ts'
import type { Prune } from './prune.ts'

/** Opens the content log. Its thread is started when something is kept or read. */
export function openContentLog(
  { databaseUrl, dataDir, bucketKey }: Pick<Environment, 'databaseUrl' | 'dataDir' | 'bucketKey'>,
  secrets: Secrets,
  {
    metrics,
    warn = () => {},
    settings,
  }: Pick<ContentLogServices, 'settings'> &
    Partial<Pick<ContentLogServices, 'warn'>> & { readonly metrics?: Metrics },
): ContentLog {
  const isEmbedded = sqlitePath(databaseUrl) !== undefined
  return new ContentLog({
    settings,
    warn,
    secrets,
    folder: isEmbedded ? join(dataDir, 'content') : undefined,
    databaseUrl: isEmbedded ? undefined : databaseUrl,
    bucketKey,
    onDropped: (reason) => metrics?.add('contentDropped', 1, reason),
    nowMs: () => performance.now(),
  })
}

/** Pruning that also removes content past its retention; of several workers, the first does. */
export function withContent(
  { prune, others }: Pick<OpenedLedger, 'prune' | 'others'>,
  content: ContentLog,
): Prune {
  if (others && 'index' in others && others.index !== 1) return prune
  return async (days, signal) => ({ ...(await prune(days, signal)), ...(await content.prune()) })
}
