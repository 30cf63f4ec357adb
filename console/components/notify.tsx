import { Button, Group } from '@mantine/core'
import { notifications } from '@mantine/notifications'
import { ApiError } from '../api/api-error.ts'
import type { Texts } from '../locales/use-texts.tsx'

/** Shows that an action was done, with an undo button where possible. */
export function showNotice(text: string, undo?: { readonly label: string; readonly run: () => void }): void {
  const id = notifications.show({
    role: 'status',
    withBorder: true,
    autoClose: undo ? 8000 : 4000,
    message: undo ? (
      <Group justify="space-between" wrap="nowrap">
        {text}
        <Button
          variant="subtle"
          onClick={() => {
            notifications.hide(id)
            undo.run()
          }}
        >
          {undo.label}
        </Button>
      </Group>
    ) : (
      text
    ),
  })
}

/** Shows why an action was not done. */
export function showFailure(error: unknown, texts: Texts): void {
  notifications.show({
    role: 'alert',
    color: 'red',
    withBorder: true,
    autoClose: 12_000,
    title: reasonOf(error, texts),
    message: sentenceOf(error) ?? '',
  })
}

/** An error in the user's language. */
export function reasonOf(error: unknown, { errors }: Texts): string {
  const codes: Readonly<Record<string, string>> = errors.byCode
  if (isWithoutAnswer(error)) return errors.noAnswer
  return (error instanceof ApiError ? codes[error.code] : undefined) ?? errors.notDone
}

/** The gateway's own sentence about an error; undefined where no answer came. */
export function sentenceOf(error: unknown): string | undefined {
  if (isWithoutAnswer(error)) return undefined
  return error instanceof Error ? error.message : String(error)
}

/** Whether it is not known what became of a request: no answer came, or not the gateway's. */
function isWithoutAnswer(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 0 || (error.status >= 500 && error.code === ''))
}
