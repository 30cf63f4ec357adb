import process from 'node:process'
import { runCommand } from './run-command.ts'
import type { CommandContext } from './command-context.ts'

/** Exit code that shells report for a program ended by SIGPIPE. */
const CODE_OF_SIGPIPE = 141

const { env, stdout: out, stderr: err } = process
// A getter, so that only commands that read standard input open it.
const shell: CommandContext = {
  env,
  out,
  err,
  exitCode: 0,
  get input() {
    return process.stdin
  },
}
// If the reader of a pipe closes it, as `head` does, a command ends at once, like one that a signal stopped.
// Services continue without a reader.
for (const stream of [out, err])
  stream.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error
    process.exit(CODE_OF_SIGPIPE)
  })
await runCommand(process.argv.slice(2), shell)
process.exitCode = shell.exitCode
