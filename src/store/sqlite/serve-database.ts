import type { DatabaseSync } from 'node:sqlite'
import type { MessagePort } from 'node:worker_threads'
import { unpackBatch } from './packed-batch.ts'
import { openForReading, openForWriting, wasClosedCleanly } from './connection.ts'
import { mapOpeningError, serializeError } from './failure.ts'
import type {
  BatchReply,
  MessageFromThread,
  QueuedOperation,
  ThreadOptions,
  MessageToThread,
} from './messages.ts'
import { isDatabaseOfGateway, prepareDatabase, secretStateOf } from './prepare-database.ts'
import { type SecretState, settleSecrets } from '../secret-state.ts'
import { IdleSums } from './idle-sums.ts'
import { WriteBatches } from './write-batch.ts'

interface OpenThread {
  readonly secretState?: SecretState
  run(operations: readonly QueuedOperation[]): Promise<BatchReply>
  /** Closes the database; never rejects. */
  close(): Promise<void>
}

type DatabaseOptions = Extract<ThreadOptions, { readonly secrets: unknown }>

async function openWriter({ path, secrets }: DatabaseOptions): Promise<OpenThread> {
  const stoppedClean = wasClosedCleanly(path)
  // Refuses the database of another program before anything of it is changed.
  isDatabaseOfGateway(path)
  const db = openForWriting(path)
  await prepareDatabase(db, secrets, { stoppedClean })
  const batches = new IdleSums(new WriteBatches(db, secrets))
  return {
    secretState: secretStateOf(db),
    run: (operations) => batches.write(operations),
    async close() {
      await batches.close()
      db.close()
    },
  }
}

async function openReader({ path, secrets }: DatabaseOptions): Promise<OpenThread> {
  const { ReadBatches } = await import('./read-batch.ts')
  const db = openForReading(path)
  settleSecrets(secrets, secretStateOf(db))
  const batches = new ReadBatches(db, secrets)
  return { run: (operations) => batches.read(operations), close: () => closed(db) }
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
    close: () => closed(db),
  }
}

function closed(db: DatabaseSync): Promise<void> {
  db.close()
  return Promise.resolve()
}

function openThread(options: ThreadOptions): Promise<OpenThread> {
  switch (options.role) {
    case 'writer':
      return openWriter(options)
    case 'reader':
      return openReader(options)
    case 'node':
      return openNode(options)
  }
}

/**
 * Opens the database named in the first message. Then runs one batch at a time, until a message asks to
 * close. Runs on the calling thread. `onOpen` is called before the message that the database is open.
 */
export function serveDatabase(port: MessagePort, onOpen: () => void = () => {}): void {
  port.once('message', (options: ThreadOptions) => void serve(port, options, onOpen))
}

async function serve(port: MessagePort, options: ThreadOptions, onOpen: () => void): Promise<void> {
  const send = (message: MessageFromThread): void => port.postMessage(message)
  let thread: OpenThread
  try {
    thread = await openThread(options)
  } catch (error) {
    send({ kind: 'refused', failure: serializeError(mapOpeningError(error, options.path)) })
    port.close()
    return
  }
  let isClosing = false
  port.on('message', (message: MessageToThread) => {
    if (message.kind === 'close') {
      // The message to close may arrive twice, but the database can be closed only once.
      if (isClosing) return
      isClosing = true
      void thread.close().then(() => port.close())
    } else void thread.run(unpackBatch(message.operations)).then(send)
  })
  onOpen()
  send({ kind: 'ready', secretState: thread.secretState })
}
