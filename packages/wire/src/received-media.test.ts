import { expect, test } from 'vitest'
import { ReceivedMedia } from './received-media.ts'

const base64 = (bytes: number[], total = bytes.length): string =>
  Buffer.concat([Buffer.from(bytes), Buffer.alloc(total - bytes.length)]).toString('base64')
const PNG = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52]
const JPEG = [0xff, 0xd8, 0xff, 0xe0, 0, 4, 0, 0, 0xff, 0xc2, 0, 11, 8, 0x01, 0x00, 0x02, 0x00, 3]
const WEBP = [
  ...Buffer.from('RIFF----WEBPVP8X', 'latin1'),
  10,
  0,
  0,
  0,
  0,
  0,
  0,
  0,
  0xff,
  0x01,
  0,
  0xff,
  0,
  0,
]

test.each([
  ['PNG', base64([...PNG, 0, 0, 4, 0, 0, 0, 6, 0], 60), '1024x1536', 6_240],
  ['JPEG', base64(JPEG, 60), '512x256', 520],
  ['WebP', base64(WEBP, 60), '512x256', 520],
  ['a size that no model makes', base64([...PNG, 0x7f, 0xff, 0xff, 0xff, 0, 0, 4, 0], 60), undefined, 6_240],
  ['a side of nothing', base64([...PNG, 0, 0, 0, 0, 0, 0, 4, 0], 60), undefined, 6_240],
  ['other bytes', base64([1, 2, 3, 4], 60), undefined, 6_240],
  ['an address', '', undefined, 6_240],
])('the size of an image is read from its bytes: %s', (_, data, size, tokens) => {
  const arrived = new ReceivedMedia()
  arrived.addPicture(data)
  expect(arrived.pictures).toEqual([{ size, tokens }])
})

test.each([
  [undefined, 64_000, 1],
  ['audio/L16;codec=pcm;rate=16000', 64_000, 1.5],
  ['audio/mpeg', 64_000, 6],
])(
  'the seconds of received sound are computed from its type and its number of bytes: %s',
  (type, length, seconds) => {
    const arrived = new ReceivedMedia()
    arrived.addSound(length, type)
    expect(arrived.seconds).toBe(seconds)
  },
)

test('encrypted thoughts in a reply count as tokens only for the length by which they exceed the visible thoughts', () => {
  const arrived = new ReceivedMedia()
  arrived.addHidden(1_600, 0)
  expect(arrived.hiddenTokens).toBe(300)
  arrived.addHidden(1_600, 400)
  expect(arrived.hiddenTokens).toBe(500)
  arrived.addHidden(160, 4_000)
  expect(arrived.hiddenTokens).toBe(500)
})
