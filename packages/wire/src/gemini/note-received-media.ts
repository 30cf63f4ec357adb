import type { ArrivedMedia } from '../received-media.ts'
import type { Fields } from '../field.ts'
import { asRecord } from '../json/record.ts'
import { either } from './spelling.ts'

/** Tokens of an image of up to a megapixel. */
const PICTURE_TOKENS = 1_290

/** Records the audio and the images of a candidate's parts; those in thoughts are not charged. */
export function noteArrived(parts: readonly unknown[], arrived: ArrivedMedia, elidedBytes = 0): void {
  for (const value of parts) {
    const part = asRecord(value)
    const inline = asRecord(part && either(part, 'inlineData'))
    const media = inline ?? asRecord(part && either(part, 'fileData'))
    if (!media || part?.['thought'] === true) continue
    const type = textIn(media, 'mimeType')
    const data = textIn(media, 'data')
    if (type.startsWith('audio/')) arrived.addSound(data.length + elidedBytes, type)
    else if (type.startsWith('image/')) arrived.addPicture(data, PICTURE_TOKENS)
  }
}

function textIn(fields: Fields, name: string): string {
  const value = either(fields, name)
  return typeof value === 'string' ? value : ''
}
