import process from 'node:process'
import { runCommand } from './run-command.ts'
import type { Shell } from './shell.ts'

const { env, stdout: out, stderr: err } = process
// A getter, so that standard input is opened only by commands that read it.
const shell: Shell = {
  env,
  out,
  err,
  exitCode: 0,
  get input() {
    return process.stdin
  },
}
await runCommand(process.argv.slice(2), shell)
process.exitCode = shell.exitCode
