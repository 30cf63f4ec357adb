import type { Tool } from './prompt.ts'

/** Whether a tool edits files by patches, like the patch tool of coding agents. */
export function isPatchTool({ name }: Tool): boolean {
  return /(?:^|_)apply_patch$/.test(name)
}

/**
 * Writes the patch that a message asks for. If it quotes two texts, the first is replaced by the second; a
 * single one becomes the content of the file. `shown` is the part of the file that tools have returned: it is
 * needed because a patch contains whole lines.
 */
export function writePatch(path: string, quoted: readonly string[], shown: string): string {
  const [old = '', replacement] = quoted
  if (replacement === undefined)
    return patch(
      `*** Add File: ${path}`,
      old.split('\n').map((line) => `+${line}`),
    )
  const line = shown.split('\n').find((one) => one.includes(old)) ?? old
  return patch(`*** Update File: ${path}`, ['@@', `-${line}`, `+${line.replace(old, () => replacement)}`])
}

function patch(head: string, lines: readonly string[]): string {
  return ['*** Begin Patch', head, ...lines, '*** End Patch', ''].join('\n')
}

/** Writes the shell command with which agents apply a patch. */
export function patchCommand(patch: string): string {
  return `apply_patch <<'PATCH'\n${patch}PATCH`
}
