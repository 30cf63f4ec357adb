import type { Secrets } from '../secrets.ts'
import type { Store } from '../store.ts'
import { DatabaseThread } from './thread.ts'

/**
 * Opens the database file, makes it if it is not there, and brings its schema up to date. Rejects, with a sentence for
 * the operator, if the file was made with another secret or by a newer version, or cannot be used at all.
 */
export async function openSqliteStore(options: {
  readonly path: string
  readonly secret: Secrets
}): Promise<Store> {
  const { path, secret: secrets } = options
  const writer = new DatabaseThread({ role: 'writer', path, secrets })
  const reader = new DatabaseThread({ role: 'reader', path, secrets })
  try {
    await Promise.all([writer.ready, reader.ready])
  } catch (error) {
    await Promise.all([writer.close(), reader.close()])
    throw error
  }
  return {
    read: (name, ...[input]) => reader.run(name, input) as never,
    write: (name, ...[input]) => writer.run(name, input) as never,
    get queued() {
      return writer.queued
    },
    async close() {
      writer.refuseMore()
      // The last connection to go tidies up, and only one that writes can.
      await reader.close()
      await writer.close()
    },
  }
}
