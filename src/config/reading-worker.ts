import { once } from 'node:events'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import type { DeclaredUser } from '../domain/records/user.ts'
import { ConfigError } from './diagnostics.ts'
import { type ConfigFileReading, readFile } from './read-file.ts'
import { packNode } from './yaml-node.ts'
import { builtInPrices } from './built-in-prices.ts'
import type { ReadingThreadMessage, ReadingTask } from './reading-thread.ts'

/**
 * Maximum number of users and tokens in one message; the main thread needs a few milliseconds to receive so
 * many.
 */
const MAX_ACCOUNTS = 500

/**
 * Reads the configuration file and posts it in small messages. It waits until the main thread has processed
 * each one, so that the main thread is never busy with several in a row.
 */
async function postReading({ environment }: ReadingTask, port: MessagePort): Promise<void> {
  const post = (message: ReadingThreadMessage): void => port.postMessage(message)
  let reading: ConfigFileReading
  try {
    reading = readFile(environment, builtInPrices())
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error
    post({ kind: 'refused', diagnostics: error.diagnostics })
    return
  }
  const { content, tree, priceFile, ...rest } = reading
  const { users, ...others } = content
  for (const part of partsOf(users)) {
    const asked = once(port, 'message')
    post({ kind: 'users', users: part })
    await asked
  }
  const packed = priceFile && { ...priceFile, tree: packNode(priceFile.tree) }
  post({ kind: 'read', content: others, tree: packNode(tree), priceFile: packed, ...rest })
}

function* partsOf(users: readonly DeclaredUser[]): Iterable<readonly DeclaredUser[]> {
  let part: DeclaredUser[] = []
  let accounts = 0
  for (const user of users) {
    part.push(user)
    accounts += 1 + user.tokens.length
    if (accounts < MAX_ACCOUNTS) continue
    yield part
    part = []
    accounts = 0
  }
  if (part.length > 0) yield part
}

if (parentPort) await postReading(workerData as ReadingTask, parentPort)
