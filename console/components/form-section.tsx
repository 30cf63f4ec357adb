import type { ReactNode } from 'react'
import classes from './form-section.module.css'

/** A part of a page of forms: its name at the left, its fields at the right. */
export function FormSection({
  title,
  text,
  children,
}: {
  readonly title: string
  readonly text?: string
  readonly children: ReactNode
}) {
  return (
    <section aria-label={title} className={classes['section']}>
      <div>
        <h2>{title}</h2>
        {text !== undefined && <p>{text}</p>}
      </div>
      <div className={classes['fields']}>{children}</div>
    </section>
  )
}
