import { extname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import type { DeclaredUser } from '../domain/records/user.ts'
import { type Config, buildConfig } from './config.ts'
import type { ConfigFileContent } from './read-sections.ts'
import { ConfigError, type Diagnostic } from './diagnostics.ts'
import type { Environment } from './environment.ts'
import { type ConfigFileReading, readFile } from './read-file.ts'
import type { PriceFile } from './price-file.ts'
import { deepFreeze } from './deep-freeze.ts'
import { type PackedNode, unpackNode } from './yaml-node.ts'
import type { BuiltInPrices } from './built-in-prices.ts'

/** Message to the thread: the environment, which names the files that it reads. */
export interface ReadingTask {
  readonly environment: Environment
}

/** A prices file whose tree is in a form that can be sent to another thread. */
export type PackedPriceFile = Omit<PriceFile, 'tree'> & { readonly tree: PackedNode }

/** Message from the main thread: asks for the next part of the users. */
export const NEXT_USERS_REQUEST = 'next'

/**
 * Message from the thread: a part of the users, or finally either everything else in the file or its errors.
 */
export type ReadingThreadMessage =
  | { readonly kind: 'users'; readonly users: readonly DeclaredUser[] }
  | ({
      readonly kind: 'read'
      readonly content: Omit<ConfigFileContent, 'users'>
      readonly tree: PackedNode
    } & { readonly priceFile: PackedPriceFile | undefined } & Omit<
        ConfigFileReading,
        'content' | 'tree' | 'priceFile'
      >)
  | { readonly kind: 'refused'; readonly diagnostics: readonly Diagnostic[] }

// The extension is .ts in the source and .js in the build.
const WORKER = new URL(`./reading-worker${extname(fileURLToPath(import.meta.url))}`, import.meta.url)

/**
 * Starts the thread. It posts the users in parts, one for each `NEXT_USERS_REQUEST` message, and then everything
 * else.
 */
export function startReadingThread(task: ReadingTask): Worker {
  return new Worker(WORKER, {
    workerData: task,
    name: 'sluice configuration',
    execArgv: [],
  })
}

/**
 * Reads the configuration file like `readConfig`, but in a thread, because a large file takes seconds and
 * calls must continue meanwhile. `builtIn` is the price list of the running configuration, which is used
 * again.
 */
export async function readConfigInThread(environment: Environment, builtIn: BuiltInPrices): Promise<Config> {
  let worker: Worker
  try {
    worker = startReadingThread({ environment })
  } catch {
    // The system cannot start another thread, so the file is read here, and calls wait meanwhile.
    return buildConfig(environment, readFile(environment, builtIn), builtIn)
  }
  const users: DeclaredUser[] = []
  try {
    return await new Promise<Config>((resolve, reject) => {
      worker.on('message', (message: ReadingThreadMessage) => {
        switch (message.kind) {
          case 'users':
            users.push(...deepFreeze(message.users))
            // Ask in a later turn of the event loop, so that calls can run in between.
            setImmediate(() => worker.postMessage(NEXT_USERS_REQUEST))
            return
          case 'read': {
            const { content, tree, priceFile: packed, ...rest } = message
            const priceFile = packed && { ...packed, tree: unpackNode(packed.tree) }
            const reading = { content: { ...content, users }, tree: unpackNode(tree), priceFile, ...rest }
            try {
              resolve(buildConfig(environment, reading, builtIn))
            } catch (error) {
              reject(error)
            }
            return
          }
          case 'refused':
            return reject(new ConfigError(message.diagnostics))
        }
      })
      worker.once('error', reject)
      worker.once('exit', () => reject(new Error('the thread that reads the configuration has ended')))
    })
  } finally {
    await worker.terminate()
  }
}
