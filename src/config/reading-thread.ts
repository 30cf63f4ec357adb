import { setImmediate } from 'node:timers/promises'
import type { DeclaredUser } from '../domain/records/user.ts'
import { Service, ServiceEnded, type ServiceOptions } from '../ipc/service.ts'
import { startThread } from '../ipc/start-thread.ts'
import { type Config, buildConfig } from './config.ts'
import type { ConfigFileContent } from './read-sections.ts'
import { CONFIG_ERRORS } from './diagnostics.ts'
import type { Environment } from './environment.ts'
import { type ConfigFileReading, readFile } from './read-file.ts'
import type { PriceFile } from './price-file.ts'
import { deepFreeze } from './deep-freeze.ts'
import { type PackedNode, unpackNode } from './yaml-node.ts'
import type { BuiltInPrices } from './built-in-prices.ts'

/** The requests of the thread. */
export interface ReadingRequests {
  /**
   * Reads the files. Returns everything but the users. Trees are in a form that
   * can be sent to another thread.
   */
  read(environment: Environment): {
    readonly content: Omit<ConfigFileContent, 'users'>
    readonly tree: PackedNode
    readonly priceFile: (Omit<PriceFile, 'tree'> & { readonly tree: PackedNode }) | undefined
  } & Omit<ConfigFileReading, 'content' | 'tree' | 'priceFile'>
  /** Returns the next part of the users of the file that was read; an empty one after the last. */
  nextUsers(): readonly DeclaredUser[]
}

/** Idle time in milliseconds after which the thread ends. Changes often follow each other, and starting a thread is slow. */
const IDLE_MS = 5_000

/** A service whose thread reads configuration files. */
export function readingService(timer: Pick<ServiceOptions, 'setTimer'> = {}): Service<ReadingRequests> {
  return new Service({
    name: 'sluice configuration',
    start: (name) => startThread('./reading-worker', import.meta.url, { name }),
    keepsAlive: true,
    isStateful: true,
    idleMs: IDLE_MS,
    ...timer,
    errors: CONFIG_ERRORS,
  })
}

/**
 * Reads the configuration files like `readConfig`, one reading after another, but in a thread, because a large
 * file takes seconds and calls must continue meanwhile.
 */
export class ReadingThread {
  readonly #timer: Pick<ServiceOptions, 'setTimer'>
  #service: Service<ReadingRequests>

  constructor(timer: Pick<ServiceOptions, 'setTimer'> = {}) {
    this.#timer = timer
    this.#service = readingService(timer)
  }

  /** `builtIn` is the price list of the running configuration, which is used again. */
  async read(environment: Environment, builtIn: BuiltInPrices): Promise<Config> {
    // A stateful service whose thread has ended does not start another.
    if (!this.#service.isRunning) this.#service = readingService(this.#timer)
    const service = this.#service
    try {
      const reading = await service.request('read', environment)
      const users: DeclaredUser[] = []
      for (;;) {
        const part = await service.request('nextUsers', undefined)
        if (part.length === 0) break
        users.push(...deepFreeze(part))
        // Ask in a later turn of the event loop, so that calls can run in between.
        await setImmediate()
      }
      const { content, tree, priceFile, ...rest } = reading
      return buildConfig(
        environment,
        {
          ...rest,
          content: { ...content, users },
          tree: unpackNode(tree),
          priceFile: priceFile && { ...priceFile, tree: unpackNode(priceFile.tree) },
        },
        builtIn,
      )
    } catch (error) {
      if (!(error instanceof ServiceEnded && error.reason === 'not started')) throw error
      // The system cannot start another thread, so the file is read here while calls wait.
      return buildConfig(environment, readFile(environment, builtIn), builtIn)
    }
  }

  /** Ends the thread. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.#service.close()
  }
}
