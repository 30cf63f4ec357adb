import { join } from 'node:path'
import type { Environment } from '../config/environment.ts'
import { BUCKET_VARIABLES } from '../config/content-log.ts'
import type { BucketKey } from '../content/messages.ts'
import { ContentLog, type ContentLogServices } from '../content/content-log.ts'
import { sqlitePath } from '../domain/database-url.ts'
import type { Secrets } from '../store/secrets.ts'
import type { Metrics } from '../telemetry/metrics.ts'
import type { OpenedLedger } from './open-ledger.ts'
import type { Prune } from './prune.ts'

/** Opens the content log. Its thread is started when something is kept or read. */
export function openContentLog(
  { databaseUrl, dataDir, variables }: Pick<Environment, 'databaseUrl' | 'dataDir' | 'variables'>,
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
    bucketKey: bucketKeyOf(variables),
    onDropped: (reason) => metrics?.add('contentDropped', 1, reason),
    nowMs: () => performance.now(),
  })
}

/** Credentials for a bucket, by Amazon's names; undefined if they are not set. */
function bucketKeyOf(variables: Environment['variables']): BucketKey | undefined {
  const [accessKeyId, secretAccessKey] = BUCKET_VARIABLES.map((name) => variables.get(name))
  if (!accessKeyId || !secretAccessKey) return undefined
  const sessionToken = variables.get('AWS_SESSION_TOKEN')
  return { accessKeyId, secretAccessKey, ...(sessionToken && { sessionToken }) }
}

/** Pruning that also removes content past its retention; of several workers, the first does. */
export function withContent(
  { prune, others }: Pick<OpenedLedger, 'prune' | 'others'>,
  content: ContentLog,
): Prune {
  if (others && 'index' in others && others.index !== 1) return prune
  return async (days, signal) => ({ ...(await prune(days, signal)), ...(await content.prune()) })
}
