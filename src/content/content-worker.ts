import { parentPort, workerData } from 'node:worker_threads'
import { ContentStorage } from './content-storage.ts'
import type { ContentThreadOptions, FromContentThread, ContentOfCall, ToContentThread } from './messages.ts'
import type { ContentDatabase } from './content-database.ts'
import { SqliteContentDatabase } from './sqlite-content-database.ts'

const { folder, databaseUrl, secrets, bucketKey } = workerData as ContentThreadOptions

async function openDatabase(): Promise<ContentDatabase> {
  if (databaseUrl === undefined) return new SqliteContentDatabase(folder ?? '')
  // Loaded on demand, because the embedded database does not need it.
  const { PostgresContentDatabase } = await import('./postgres-content-database.ts')
  return PostgresContentDatabase.open(databaseUrl)
}

const opening = openDatabase().then((database) => new ContentStorage(database, secrets, bucketKey))
opening.catch(() => {})

function outputOf(storage: ContentStorage, name: ToContentThread['name'], input: unknown): unknown {
  if (name === 'close') return storage.close()
  if (name === 'secrets') return void Object.assign(secrets, input)
  return storage[name](input as never)
}

async function answer({ number, name, input, place }: ToContentThread): Promise<void> {
  try {
    const storage = await opening
    storage.place = place
    const output: unknown = await outputOf(storage, name, input)
    const transferred = name === 'read' && output ? [(output as ContentOfCall).content.buffer] : []
    parentPort?.postMessage({ number, output } satisfies FromContentThread, transferred)
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error)
    parentPort?.postMessage({ number, error: message } satisfies FromContentThread)
  }
}

parentPort?.on('message', (message: ToContentThread) => void answer(message))
