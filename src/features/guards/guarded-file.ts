import type { MediaPart } from '@sluice/wire/conversation'
import type { TextPlace } from '@sluice/wire/found-texts'
import { readTextFile } from '@sluice/wire/text-file'
import type { CallGuards } from './call-guards.ts'
import { checkedFileText, refusing } from './guarded-request.ts'
import { checkTexts } from './services/checked-request.ts'

/** Checks a file. Resolves to the file to send on. Rejects with `guard_blocked`. */
export async function guardedFile(guards: CallGuards, part: MediaPart, place: TextPlace): Promise<MediaPart> {
  const { source, name = '' } = part
  if (source.kind !== 'inline') return part
  const bytes = Buffer.from(source.data, 'base64')
  const file = readTextFile(bytes, { mediaType: source.mediaType, name })
  if (!file) return part
  return refusing(guards, async () => {
    const checked = await checkedFileText(guards, file.text, { place, isSigned: false })
    const [judged = checked] = guards.services ? await checkTexts(guards.services, [checked], place) : []
    if (judged === file.text) return part
    return { ...part, source: { ...source, data: file.encode(judged).toString('base64') } }
  })
}
