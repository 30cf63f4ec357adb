import type { Tool } from './prompt.ts'

/** Whether a tool edits files by patches, as coding agents offer it. */
export function isPatchTool({ name }: Tool): boolean {
  return /(?:^|_)apply_patch$/.test(name)
}

/**
 * Writes the patch that a message asks for: of two quoted texts, the first is replaced by the second; a
 * single one becomes the content of the file. `shown` is the file as far as tools returned it, because a
 * patch needs whole lines.
 */
export function patchFor(path: string, quoted: readonly string[], shown: string): string {
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

/** Passes a patch to the command that agents provide in their shell. */
export function patchCommand(patch: string): string {
  return `apply_patch <<'PATCH'\n${patch}PATCH`
}
