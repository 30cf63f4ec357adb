import { expect, test } from 'vitest'
import { patchFor } from './patch.ts'

test('one quoted text becomes the content of a new file', () => {
  expect(patchFor('a.txt', ['hello'], '')).toBe(
    '*** Begin Patch\n*** Add File: a.txt\n+hello\n*** End Patch\n',
  )
})

test('two quoted texts change the line that contains the first', () => {
  expect(patchFor('a.txt', ['gate', '$& tower'], 'Output:\nMeet at the gate.\nBring a coat.')).toBe(
    '*** Begin Patch\n*** Update File: a.txt\n@@\n-Meet at the gate.\n+Meet at the $& tower.\n*** End Patch\n',
  )
})

test('a file that was not shown is expected to have the text as a line', () => {
  expect(patchFor('a.txt', ['one', 'two'], 'No such file')).toContain('\n-one\n+two\n')
})
