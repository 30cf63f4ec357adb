import type { ArrivedMedia } from '../received-media.ts'
import type { Fields } from '../field.ts'
import { asRecord, textOr } from '../json/record.ts'

/** Records the audio, the images and the encrypted reasoning of a message or a delta. */
export function noteArrived(message: Fields | undefined, arrived: ArrivedMedia, elidedBytes = 0): void {
  if (!message) return
  const sound = textOr(asRecord(message['audio'])?.['data'])
  if (sound !== '') arrived.addSound(sound.length + elidedBytes)
  for (const list of [message['images'], message['content']])
    if (Array.isArray(list)) for (const part of list) notePicture(asRecord(part), arrived)
  const details = message['reasoning_details']
  if (!Array.isArray(details)) return
  for (const detail of details) {
    const hidden = textOr(asRecord(detail)?.['data'])
    if (hidden !== '') arrived.addHidden(hidden.length, 0)
  }
}

function notePicture(part: Fields | undefined, arrived: ArrivedMedia): void {
  const held = part?.['image_url']
  const url = textOr(asRecord(held)?.['url'] ?? held)
  if (url !== '') arrived.addPicture(url.startsWith('data:') ? url.slice(url.indexOf(',') + 1) : '')
}
