import { type FileWithin, filesWithin, type ValueKind } from '@sluice/wire/files-in-values'
import type { CheckTurns } from '../../call/check-turns.ts'

/** The files of text within a value, as `filesWithin` reads them, in turns. Rejects with `CheckCancelled`. */
export async function readFilesWithin(
  value: string,
  kind: ValueKind,
  turns: CheckTurns,
): Promise<FileWithin[]> {
  const files: FileWithin[] = []
  const reading = filesWithin(value, kind)
  const step = (): IteratorResult<FileWithin | undefined, void> => reading.next()
  for (let next = await turns.check(step); !next.done; next = await turns.check(step))
    if (next.value) files.push(next.value)
  return files
}
