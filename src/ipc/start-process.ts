import { fork } from 'node:child_process'
import type { Helper } from './service.ts'
import { urlOfHelper } from './start-thread.ts'

/**
 * Starts a Node process. `module` is the path of its code from the module `from` (an `import.meta.url`), without
 * extension. A process whose heap grows above `maxOldMb` MiB ends. It writes nothing, because its output could
 * contain untrusted texts.
 */
export function startProcess(
  module: string,
  from: string,
  { maxOldMb }: { readonly maxOldMb: number },
): Helper {
  const child = fork(urlOfHelper(module, from), {
    execArgv: [`--max-old-space-size=${maxOldMb}`],
    serialization: 'advanced',
    stdio: ['ignore', 'ignore', 'ignore', 'ipc'],
  })
  if (child.pid === undefined) {
    // The reason follows as an event, which would end this process.
    child.on('error', () => {})
    throw new Error(`the system cannot start a process for ${module}`)
  }
  return {
    on: child.on.bind(child),
    // An error needs no handling, because the `exit` event follows.
    postMessage: (message) => void child.send(message, () => {}),
    ref() {
      child.ref()
      child.channel?.ref()
    },
    unref() {
      child.unref()
      child.channel?.unref()
    },
    async terminate() {
      if (child.exitCode !== null || child.signalCode !== null) return
      const end = new Promise((resolve) => child.once('exit', resolve))
      child.kill('SIGKILL')
      await end
    },
  }
}
