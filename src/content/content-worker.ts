import { workerData } from 'node:worker_threads'
import { serve } from '../ipc/serve.ts'
import { ContentStorage } from './content-storage.ts'
import type { ContentThreadOptions, ContentOfCall, ContentThreadRequests } from './messages.ts'
import type { ContentDatabase } from './content-database.ts'
import { SqliteContentDatabase } from './sqlite-content-database.ts'

const options = workerData as ContentThreadOptions

async function openDatabase({ databaseUrl, folder }: ContentThreadOptions): Promise<ContentDatabase> {
  if (databaseUrl === undefined) return new SqliteContentDatabase(folder ?? '')
  // Loaded on demand, because the embedded database does not need it.
  const { PostgresContentDatabase } = await import('./postgres-content-database.ts')
  return PostgresContentDatabase.open(databaseUrl)
}

serve<ContentThreadRequests>(new ContentStorage(await openDatabase(options), options), {
  transferred(result) {
    const content = (result as Partial<ContentOfCall> | undefined)?.content
    return content ? [content.buffer] : []
  },
})
