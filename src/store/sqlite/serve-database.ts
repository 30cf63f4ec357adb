import type { MessagePort } from 'node:worker_threads'
import { unpack } from './packed-batch.ts'
import { openForReading, openForWriting, wasClosedCleanly } from './connection.ts'
import { mapOpeningError, serializeError } from './failure.ts'
import type { BatchReply, FromThread, QueuedOperation, ThreadOptions, ToThread } from './messages.ts'
import { prepareDatabase } from './prepare-database.ts'
import { WriteBatches } from './write-batch.ts'

/** A thread's side of the store: answers one batch at a time until it is told to close. */
interface OpenThread {
  run(operations: readonly QueuedOperation[]): Promise<BatchReply>
  close(): void
}

type DatabaseOrders = Extract<ThreadOptions, { readonly secrets: unknown }>

async function openWriter({ path, secrets }: DatabaseOrders): Promise<OpenThread> {
  const stoppedClean = wasClosedCleanly(path)
  const db = openForWriting(path)
  await prepareDatabase(db, secrets, { stoppedClean })
  const batches = new WriteBatches(db, secrets)
  return { run: (operations) => batches.write(operations), close: () => db.close() }
}

async function openReader({ path, secrets }: DatabaseOrders): Promise<OpenThread> {
  const { ReadBatches } = await import('./read-batch.ts')
  const db = openForReading(path)
  const batches = new ReadBatches(db, secrets)
  return { run: (operations) => batches.read(operations), close: () => db.close() }
}

async function openNode({ path }: ThreadOptions): Promise<OpenThread> {
  const { NodeBatches } = await import('./node-batch.ts')
  const { prepareNodeFile } = await import('./prepare-node-file.ts')
  const stoppedClean = wasClosedCleanly(path)
  const db = openForWriting(path)
  prepareNodeFile(db, { stoppedClean })
  const batches = new NodeBatches(db)
  return {
    run: (operations) => Promise.resolve(batches.write(operations)),
    close: () => db.close(),
  }
}

function openThread(orders: ThreadOptions): Promise<OpenThread> {
  switch (orders.role) {
    case 'writer':
      return openWriter(orders)
    case 'reader':
      return openReader(orders)
    case 'node':
      return openNode(orders)
  }
}

/**
 * Takes orders from the first message, opens the database, and answers one batch at a time until it is told
 * to close. It runs on the thread that calls it.
 */
export function serveDatabase(port: MessagePort): void {
  port.once('message', (orders: ThreadOptions) => void serve(port, orders))
}

async function serve(port: MessagePort, orders: ThreadOptions): Promise<void> {
  const say = (message: FromThread): void => port.postMessage(message)
  let thread: OpenThread
  try {
    thread = await openThread(orders)
  } catch (error) {
    say({ kind: 'refused', failure: serializeError(mapOpeningError(error, orders.path)) })
    port.close()
    return
  }
  port.on('message', (message: ToThread) => {
    if (message.kind === 'close') {
      thread.close()
      port.close()
    } else void thread.run(unpack(message.operations)).then(say)
  })
  say({ kind: 'ready' })
}
