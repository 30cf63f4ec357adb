import process from 'node:process'
import type { Transferable } from 'node:worker_threads'
import { type ErrorForm, PLAIN_ERRORS } from './error-form.ts'

const { parentPort } = process.getBuiltinModule('node:worker_threads')

/** A request to a helper. */
export interface MessageToHelper {
  readonly id: number
  readonly name: string
  readonly argument: unknown
}

/** Message from a helper: it has loaded its code, or the result or the packed error of a request. */
export type MessageFromHelper =
  | 'ready'
  | { readonly id: number; readonly result: unknown }
  | { readonly id: number; readonly error: unknown }

/** A handler for each request: takes the argument, and returns the result or a promise of it. */
export type Handlers<Requests> = { readonly [Name in keyof Requests]: (argument: never) => unknown }

interface ServeOptions {
  /** How errors are sent; by default with message and stack. The `Service` has the same form. */
  readonly errors?: ErrorForm
  /** Buffers in a result that are moved to the caller instead of copied. */
  readonly transferred?: (result: unknown) => readonly Transferable[]
}

/**
 * Handles the requests of a `Service` in the thread or process that it has started. Requests that arrive
 * before this is called wait. A process ends when its parent has ended.
 */
export function serve<Requests extends Handlers<Requests>>(
  handlers: Requests,
  { errors = PLAIN_ERRORS, transferred = () => [] }: ServeOptions = {},
): void {
  const send = (message: MessageFromHelper, moved: readonly Transferable[] = []): void => {
    if (parentPort) parentPort.postMessage(message, moved)
    else process.send?.(message)
  }
  const handle = async ({ id, name, argument }: MessageToHelper): Promise<void> => {
    try {
      const result = await handlers[name as keyof Requests](argument as never)
      send({ id, result }, transferred(result))
    } catch (error) {
      send({ id, error: errors.pack(error) })
    }
  }
  if (parentPort) parentPort.on('message', (message: MessageToHelper) => void handle(message))
  else {
    process.on('message', (message: MessageToHelper) => void handle(message))
    process.once('disconnect', () => process.exit(1))
  }
  send('ready')
}
