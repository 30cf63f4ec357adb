import type { NodeFile } from '../node-file.ts'
import type { StoreUnavailable } from '../store-unavailable.ts'
import { DatabaseThread, type IdleThread } from './database-thread.ts'

/**
 * Opens the file of a node that reports to this bank; creates it if it is missing. Rejects with a sentence
 * for the operator if the file is damaged, of a newer version, or has calls to report to another bank.
 */
export async function openNodeFile(options: {
  readonly path: string
  readonly bankId: string
  /** Idle thread to use; undefined = starts one. */
  readonly thread?: IdleThread | undefined
}): Promise<NodeFile> {
  const { path, bankId } = options
  const failed = Promise.withResolvers<StoreUnavailable>()
  const thread = new DatabaseThread({ role: 'node', path }, failed.resolve, options.thread)
  try {
    await thread.ready
    const node = (await thread.run('joinBank', { bankId })) as string
    return {
      node,
      write: (name, ...[input]) => thread.run(name, input) as never,
      get queued() {
        return thread.queued
      },
      failed: failed.promise,
      close: () => thread.close(),
    }
  } catch (error) {
    await thread.close()
    throw error
  }
}
