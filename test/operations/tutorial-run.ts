import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import process from 'node:process'
import { freePort } from '../fixtures/port.ts'
import { BASE_ENVIRONMENT, programFolder } from '../fixtures/program.ts'
import type { TutorialBlock } from './tutorial-page.ts'

/** Ports of the pages; each run replaces them with free ones. */
const PAGE_PORTS = ['3000', '3001', '3002', '8443']
const READY_SECONDS = 120

/** The result of running the blocks of a page. */
export interface TutorialRun {
  /** The exit code of the shell, which stops at the first command that fails. */
  readonly code: number | null
  /** The last block that began, and the output of all blocks, for failure messages. */
  readonly report: string
  /** The standard output of each block, by the block's index. */
  readonly outputs: readonly string[]
  /** The content of a file in the working folder. */
  readonly file: (name: string) => string
  discard(): void
}

/** Whether a program is installed. */
export function isInstalled(program: string): boolean {
  return spawnSync('sh', ['-c', `command -v ${program}`]).status === 0
}

/**
 * Runs the blocks in one shell and an empty folder. `replacements` maps texts of the page to those used in
 * the test.
 */
export async function runTutorial(
  blocks: readonly TutorialBlock[],
  replacements: ReadonlyMap<string, string>,
): Promise<TutorialRun> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-tutorial-'))
  const work = join(folder, 'work')
  const home = join(folder, 'home')
  for (const path of [work, home, join(folder, 'bin')]) mkdirSync(path)
  const program = join(folder, 'bin/sluice')
  writeFileSync(
    program,
    `#!/bin/sh\nexec '${process.execPath}' '${await programFolder()}/bin/sluice.mjs' "$@"\n`,
  )
  chmodSync(program, 0o755)
  const ports = new Map<string, string>()
  for (const port of PAGE_PORTS) ports.set(port, String(await freePort()))
  const local = (text: string): string => {
    let result = text
    for (const [from, to] of replacements) result = result.replaceAll(from, to)
    return result.replaceAll(/\b\d{4}\b/g, (number) => ports.get(number) ?? number)
  }
  const parts = blocks.map((block, i) =>
    stepOf({ ...block, text: local(block.text) }, join(folder, `${i}`), local),
  )
  const script = join(folder, 'script')
  writeFileSync(script, ['set -euo pipefail', ...parts.map((part, i) => `STEP=${i}\n${part}`)].join('\n'))
  const child = spawn('bash', ['-c', `trap 'echo "block $STEP failed" >&2' ERR; . '${script}'`], {
    cwd: work,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      PATH: `${join(folder, 'bin')}:${process.env['PATH']}`,
      HOME: home,
      PORT: ports.get('3000'),
      NODE_COMPILE_CACHE: BASE_ENVIRONMENT['NODE_COMPILE_CACHE'],
    },
  })
  let said = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const code = await new Promise<number | null>((resolve) => child.on('exit', resolve))
  endGroup(child.pid)
  const read = (name: string): string => (existsSync(name) ? readFileSync(name, 'utf8') : '')
  // In the outputs, the ports are those of the page again.
  const outputs = blocks.map((_, i) => {
    let output = read(join(folder, `${i}`))
    for (const [port, own] of ports) output = output.replaceAll(own, port)
    return output
  })
  return {
    code,
    outputs,
    report: [said, ...outputs.map((output, i) => `--- block ${i}\n${output.slice(-2_000)}`)].join('\n'),
    file: (name) => read(join(work, name)),
    discard: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** The commands of one block, with the output redirected to a file. */
function stepOf(block: TutorialBlock, output: string, local: (text: string) => string): string {
  switch (block.kind) {
    case 'file':
      return `cat > '${block.name}' <<'END OF FILE'\n${block.text}END OF FILE`
    case 'run':
      // A group of commands, not a subshell: later blocks use its variables.
      return `{\n${block.text}\n} > '${output}'`
    case 'background':
      return `{\n${block.text}\n} > '${output}' 2>&1 &
for ((i = 0; i < ${READY_SECONDS * 10}; i++)); do
  curl -skf -o '${output}.ready' '${local(block.ready)}' && break
  kill -0 $! || break
  sleep 0.1
done
test -e '${output}.ready'`
    case 'output':
      return ''
  }
}

function endGroup(pid: number | undefined): void {
  try {
    if (pid !== undefined) process.kill(-pid, 'SIGKILL')
  } catch {
    // Every process of the group has ended.
  }
}
