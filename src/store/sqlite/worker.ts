import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { openForReading, openForWriting } from './connection.ts'
import { blamed, takeApart } from './failure.ts'
import type { BatchReply, FromThread, QueuedOperation, ThreadOrders, ToThread } from './messages.ts'
import { prepareDatabase } from './prepare-database.ts'
import { ReadBatches } from './read-batch.ts'
import { WriteBatches } from './write-batch.ts'

/** A thread's side of the store: answers one batch at a time until it is told to close. */
interface OpenThread {
  run(operations: readonly QueuedOperation[]): Promise<BatchReply>
  close(): void
}

async function openWriter({ path, secrets }: ThreadOrders): Promise<OpenThread> {
  const db = openForWriting(path)
  await prepareDatabase(db, secrets)
  const batches = new WriteBatches(db, secrets)
  return { run: (operations) => batches.write(operations), close: () => db.close() }
}

// Opens at the first question: the file and its schema are the writer's to make.
function openReader({ path, secrets }: ThreadOrders): OpenThread {
  let db: ReturnType<typeof openForReading> | undefined
  let batches: ReadBatches | undefined
  return {
    async run(operations) {
      try {
        db ??= openForReading(path)
        batches ??= new ReadBatches(db, secrets)
      } catch (error) {
        return { kind: 'failed', failure: takeApart(blamed(error)) }
      }
      return batches.read(operations)
    },
    close: () => db?.close(),
  }
}

async function serve(port: MessagePort, orders: ThreadOrders): Promise<void> {
  const say = (message: FromThread): void => port.postMessage(message)
  let thread: OpenThread
  try {
    thread = orders.role === 'writer' ? await openWriter(orders) : openReader(orders)
  } catch (error) {
    say({ kind: 'refused', failure: takeApart(blamed(error)) })
    port.close()
    return
  }
  port.on('message', (message: ToThread) => {
    if (message.kind === 'close') {
      thread.close()
      port.close()
    } else void thread.run(message.operations).then(say)
  })
  say({ kind: 'ready' })
}

if (parentPort) await serve(parentPort, workerData as ThreadOrders)
